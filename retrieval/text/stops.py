"""Stop words per language: the commonest function words, written by hand; a language without a list has none.

Words that are also names of things stay out: may (the month), us (the country).
"""

from __future__ import annotations

STOP_WORDS: dict[str, str] = {
    "english": """
        a an the and or but nor so yet if then else than as at by for from in into of off on onto out over to up with
        about above after again against along among around before behind below beneath beside between beyond down
        during except inside near outside per since through throughout till toward towards under until upon via
        within without while because though although whereas whether unless once
        i me my mine myself we our ours ourselves you your yours yourself yourselves he him his himself she her
        hers herself it its itself they them their theirs themselves oneself this that these those
        who whom whose which what when where why how
        am is are was were be been being do does did doing done have has had having can could will would shall should
        might must ought
        not no don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't can't couldn't won't wouldn't
        shan't shouldn't mightn't mustn't needn't ain't
        there here also just only very too such same some any each every either neither both all more most other
        others own few many much
    """,
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder aber denn sondern als wie wenn weil dass ob
        in im an am auf aus bei beim bis durch für gegen mit nach ohne seit über um unter von vom vor zu zum zur
        ich mich mir du dich dir er ihn ihm sie ihr ihnen es wir uns euch sich mein meine dein deine sein seine unser
        euer dieser diese dieses jener jene jenes man wer was wo wann warum welche welcher welches
        bin bist ist sind seid war waren wird werden wurde wurden worden hat habe haben hatte hatten kann können
        nicht kein keine auch nur noch schon sehr so da dann hier
    """,
    "french": """
        le la les un une des du de d l et ou mais donc or ni car que qu qui quoi dont où quand comment pourquoi
        à au aux avec chez dans en entre par pour sans sous sur vers
        je j me m moi tu te t toi il elle on nous vous ils elles se s lui leur y ce c cet cette ces ça
        mon ma mes ton ta tes son sa ses notre nos votre vos leurs
        suis es est sommes êtes sont étais était étaient être été ai as a avons avez ont avait avaient avoir
        ne n pas plus très aussi si comme même
    """,
    "spanish": """
        el la los las lo un una unos unas y e o u pero ni que quien quienes cual cuales cuando donde como porque si
        de del a al ante bajo con contra desde en entre hacia hasta para por según sin sobre tras
        yo me mi mí tú te ti él ella ello ellos ellas nos nosotros nosotras vosotros os usted ustedes se le les
        mis tu tus su sus nuestro nuestra este esta esto estos estas ese esa eso esos esas aquel aquella
        soy eres es somos son era eran fue fueron ser sido estoy está están estaba he ha han había hay
        no más muy ya también qué quién dónde cuándo cómo
    """,
    "italian": """
        il lo la i gli le un uno una e ed o ma né che chi cui quando dove come perché se
        di del dello della dei degli delle a al allo alla ai agli alle da dal dalla dai in nel nella nei nelle con su
        sul sulla sui per tra fra
        io me mi tu te ti lui lei noi ci voi vi loro si mio mia tuo tua suo sua nostro vostro questo questa questi
        queste quello quella quelli
        sono sei è siamo siete era erano essere stato ho hai ha abbiamo avete hanno aveva non più anche molto
    """,
    "portuguese": """
        o a os as um uma uns umas e ou mas nem que quem qual quais quando onde como porque se
        de do da dos das em no na nos nas ao aos à às com contra desde entre para pelo pela por sem sob sobre até
        eu me mim tu te ti ele ela nós vos eles elas você vocês lhe lhes meu minha teu tua seu sua seus suas nosso
        este esta isto esse essa isso aquele aquela aquilo
        sou é somos são era eram foi foram ser sido estou está estão tenho tem têm tinha há não mais muito também já
    """,
    "dutch": """
        de het een en of maar want dat die dit deze als dan toen wie wat waar wanneer waarom hoe
        in op aan bij met van voor naar uit over onder tegen tot door om te zonder tussen
        ik mij me jij je jou hij hem zij ze haar wij we ons jullie u hun hen zich mijn jouw zijn onze
        ben bent is was waren worden wordt werd heb hebt heeft hebben had hadden kan kunnen zal zullen
        niet geen ook nog al er zo hier daar
    """,
    "russian": """
        и а но или да что чтобы как когда где если то же ли бы не ни
        в во на с со к ко по о об от до из у за для при без под над между через
        я меня мне мной ты тебя тебе он его ему им она её ей мы нас нам вы вас вам они их ими себя свой
        мой твой наш ваш этот эта это эти тот та те кто
        есть был была было были быть будет ещё уже так там тут только
    """,
}
