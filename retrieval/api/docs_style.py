"""The look of the API pages, for light and dark screens."""

STYLE = """
:root{--ink:#1c2430;--soft:#5b6675;--paper:#fff;--panel:#f5f7f9;--line:#dfe4ea;--accent:#0b6e63}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b5;--paper:#12161c;--panel:#1a2028;--line:#2b333e;
--accent:#4cc7b6}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;color:var(--ink);background:var(--paper);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
nav{position:fixed;inset:0 auto 0 0;width:17rem;overflow:auto;padding:1.5rem 1.25rem;background:var(--panel);
border-right:1px solid var(--line)}
nav a{display:block;padding:.18rem 0;color:var(--ink);text-decoration:none;font-size:.88rem}
nav a:hover,nav a:focus{color:var(--accent);text-decoration:underline}
nav strong{display:block;margin:1.1rem 0 .25rem;font-size:.72rem;letter-spacing:.08em;text-transform:uppercase;
color:var(--soft)}
nav .brand{font-size:1.15rem;font-weight:650}nav small{color:var(--soft);font-weight:400}
main{margin-left:17rem;padding:2.5rem 3rem 6rem;max-width:62rem}
h1{margin:0 0 .5rem;font-size:2rem}h2{margin:3rem 0 .25rem;text-transform:capitalize}
h3{margin:0;font-size:1.02rem;font-weight:600;overflow-wrap:anywhere}
h4{margin:1.1rem 0 .35rem;font-size:.8rem;color:var(--soft);font-weight:600}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em}
p code,td code{padding:.1em .3em;border-radius:4px;background:var(--panel)}
pre{margin:0;padding:.9rem 1rem;overflow:auto;border:1px solid var(--line);border-radius:8px;background:var(--panel);
line-height:1.45}
.operation{margin:1.25rem 0;padding:1.25rem 1.4rem;border:1px solid var(--line);border-radius:12px}
.operation:target{border-color:var(--accent)}
.summary{margin:.45rem 0 .25rem;font-weight:600}.statuses{margin:.9rem 0 0;font-size:.82rem;color:var(--soft)}
.statuses a{color:inherit}
.method{display:inline-block;min-width:4.2rem;margin-right:.5rem;padding:.12rem .45rem;border-radius:6px;color:#fff;
font-size:.74rem;font-weight:700;text-align:center;background:#546170}
.method.GET{background:#1f6f8b}.method.POST{background:#0b6e63}.method.PUT,.method.PATCH{background:#8a5a00}
.method.DELETE{background:#a3303a}
table{width:100%;margin:.9rem 0 0;border-collapse:collapse;font-size:.86rem}
th{color:var(--soft);font-weight:600;text-align:left}
th,td{padding:.4rem .6rem .4rem 0;border-bottom:1px solid var(--line);
vertical-align:top}
@media (max-width:60rem){nav{position:static;width:auto;border:0}main{margin:0;padding:1.5rem 1.1rem 4rem}
table{display:block;overflow:auto}}
"""
