"""Words that are part of no noun phrase and start no name."""

from __future__ import annotations

_FUNCTION = """
a about above across after afterwards again against ago all almost alone along already also although always am
among amongst an and another any anybody anyhow anyone anything anyway anyways anywhere apart are aren't around as
aside at away b back be became because become becomes becoming been before beforehand behind being below beside
besides between beyond both but by can can't cannot could couldn't despite did didn't do does doesn't doing don't
done down due during each either else elsewhere enough especially etc even ever every everybody everyone everything
everywhere except few fewer for former formerly forth from further furthermore had hadn't half has hasn't have
haven't having he he'd he'll he's hence her here here's hereby hers herself him himself his how how's however i i'd
i'll i'm i've if in indeed inside instead into is isn't it it'd it'll it's its itself just later latter least less
lest let let's like likely likewise lot lots many may maybe me meanwhile might mine more moreover most mostly much
must mustn't my myself namely near nearby nearly neither never nevertheless next no nobody none nonetheless nor not
nothing now nowhere of off often oh ok okay on once one ones only onto or other others otherwise ought our ours
ourselves out outside over own per perhaps please plus probably quite rather re really regarding same seldom several
shall shan't she she'd she'll she's should shouldn't since so some somebody somehow someone something sometime
sometimes somewhat somewhere soon still such than that that'd that'll that's the thee their theirs them themselves
then thence there there's thereafter thereby therefore these they they'd they'll they're they've this those though
through throughout thus till to together too toward towards under underneath unless unlike until unto up upon us
usually various very via was wasn't we we'd we'll we're we've were weren't what what's whatever when when's whence
whenever where where's whereas whereby wherein wherever whether which whichever while who who'd who'll who's
whoever whole whom whomever whose why why's will with within without won't would wouldn't yet you you'd you'll
you're you've your yours yourself yourselves yeah yep yes yup nope nah ya
first second third last two three four five six seven eight nine ten dozen hundred thousand million billion
"""

_TALK = """
absolutely actually agree agreed ah aha alright amazing appreciate awesome aw aww beautiful best better big bit bye
certainly cheers clearly congrats congratulations cool course cute damn dang dear definitely easy enjoy epic
exactly excellent excited exciting fantastic favorite favourite fine fun funny gonna good goodbye gotta gosh great
guess guy guys haha happy hard hello hey hi hmm honestly hopefully hot huge impressive incredible inspiring
interesting kind kinda lol lovely luck lucky new nice nicely obviously omg oops perfect pleased pretty proud sad
sorry sort sounds sure super sweet thank thanks totally true truly tough ugh ultimately unfortunately wanna welcome
well whoa woah wonderful wow yay yikes young able bad certain different early free full important large late little
long main major old particular possible real recent recently right short similar simple small special specific
successful wrong worth
thing things stuff something way ways time times day days today tomorrow yesterday tonight morning afternoon evening
night week weeks weekend month months year years moment hour hours minute minutes kinds sorts types type
"""

_VERBS = """
accept add added agree allow allowed appear appeared appears ask asked asking asks bear been began begin beginning
begins begun believe believed born bought bring bringing brings brought build built buy buying called calling
calls came care catch caught change changed check checked checking choose chose chosen come comes coming consider
considered continue continued create created creating cut decide decided describe described did die died do done
eat eaten end ended enjoy enjoyed enjoying enjoys ensure expect expected feel feeling feels fell felt find finding
finds finish finished follow followed following forget found gave get gets getting give given gives giving go goes
going gone got gotten grew grow growing grown happen happened happening happens hear heard hearing held help helped
helping helps hold holding hope hoping include included includes including join joined keep keeping keeps kept knew
know known knowing knows lead leads learn learned learning leave leaving led left lend let lets letting lie live
lived lives living locate located look looked looking looks lose lost love loved loves loving made make makes making
managed mean means meant meet met mind miss missed move moved moving name named need needed needs offer
offered opened paid pay pick picked plan planned planning plans played playing plays provide provided
provides pull push put puts putting ran reach reached read realize realized receive received recommend
recommended release released remain remember remind reminds run runs said sat saw say saying says see seem
seemed seems seen sell send sent serve served set shared share shares sharing showed showing shown shows sit
sold speak spend spent spoke stand start started starting starts stay stayed staying stop stopped suggest
supported take taken takes taking talk talked talking talks tell telling tells think thinking thinks thought
told took tried tries try trying turn turned use used uses using visited wait waiting want wanted wants
was watch watched watching wear went wish won wonder work worked working works worry write written wrote
"""

_OTHER_LANGUAGES = """
au aux avec ce ces cette dans del della delle des dei di du el elle en est et il ils je la las le les leur lo
mais más mi ne nos notre nous ou où par pas pero por pour que qui sa se ses sont su sur tu un una unas une uno unos
vous y à è é às ao aos da das do dos em na nas no não nos o os para pela pelo uma umas uns
aber als auch auf aus bei bin bist das dass dem den der die doch durch ein eine einem einen einer eines er es für
habe haben hat hatte ich ihr im ist mein mich mir mit nach nicht noch nur oder sein seine sich sie sind über um und
uns unter vom von vor war waren weil wenn werden wie wir wird zu zum zur
het een niet ik je dat maar voor met zijn ook aan bij naar uit
"""


def words(*texts: str) -> tuple[str, ...]:
    """The words of some texts in order."""
    return tuple(word for text in texts for word in text.split())


STOP_WORDS = frozenset(words(_FUNCTION, _TALK, _VERBS, _OTHER_LANGUAGES))
"""Folded function words, words of small talk and the commonest verbs."""

FUNCTION_WORDS = frozenset(words(_FUNCTION, _OTHER_LANGUAGES))
"""The function words alone."""

CONNECTORS = frozenset(words("of the de del della van von der den di da du des la le al el bin ibn zu ter dos das"))
"""Lower-case words that may stand inside a capitalised name."""

ABBREVIATIONS = frozenset(words("dr mr mrs ms prof st mt jr sr lt gen col sgt capt rev hon ft vs inc ltd co corp"))
"""Words whose full stop ends no sentence."""
