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
you're you've your yours yourself yourselves yeah yep yes yup nope nah ya last past twice
arent cant couldnt didnt doesnt dont hadnt hasnt havent hed hes ill im isnt itll ive shes shouldnt thats theres theyll
theyre theyve wasnt werent weve whats wont wouldnt youd youll youre youve
"""

_NUMBERS = """
first second third two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty
sixty seventy eighty ninety dozen hundred thousand million billion
"""

_INTERJECTIONS = """
ah aha ahh alright amen aw aww awww bye cheers congrats congratulations damn dang gee goodbye gosh haha hahaha hello
hey heya hi hiya hm hmm hmmm hola huh hurray lmao lol mm mmm nah nope oh ohh ok okay omg oo ooh ooo oooh oops ouch phew
pls please rofl sorry tbh thanks thank thx ugh uh uhh um umm well whew whoa woah wow wowza yay yeah yep yes yikes yo yum
yummy yup
"""

_TALK = """
absolutely actually agree agreed amazing appreciate awesome beautiful best better big bit btw
certainly clearly cool course cute dear definitely delish dude dunno easy enjoy epic
exactly excellent excited exciting fantastic favorite favourite fine finally fun funny glad gonna good gotta great
guess guy guys happy hard honestly hopefully hot huge impressive incredible inspiring
interesting kind kinda lovely luck lucky new nice nicely obviously perfect pleased pretty proud sad
sort sorta sounds sure super sweet totally true truly tough ultimately unfortunately wanna welcome
wonderful young able bad certain different early free full important large late little
long main major old particular possible ready real recent recently right short similar simple small special specific
successful wrong worth
thing things stuff something way ways time times today tomorrow yesterday tonight week weeks weekend month months year
years moment hour hours minute minutes kinds sorts types type
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
ate became bet bite blew broke chose cried dealt drank drew drove fed flew forgot fought froze hid hung laid lit
meaning overheard rang resembling rode sang sank shook slept sought spun stood stuck swam swore taught threw tore
understood woke wore according belonging considering consisting depending
hang hanging holding lay laying lean leaning lying posing sitting standing wearing
"""

_WEAK = """
afraid alone amused angry annoyed anxious asleep aware awful awkward basic brave brief bright broad brown busy
calm central cheap classic clean clear close cold common complete complex constant cozy crazy creative curious dark
deep dense direct dry eager eastern effective efficient elegant empty entire exact extra extreme faint fair familiar
famous far fast final firm fond formal former frank fresh friendly further future general gentle giant glad global
gorgeous grateful green grey gray gross handsome handy happier harder harsh heavy helpful hidden high higher highest
honest humble hungry ideal immediate individual inner innocent intense international keen largest latest lazy lively
local lonely loud low lower mature medium mild minor modern multiple mutual mysterious narrow natural near neat
nervous nice normal northern obvious odd okay older oldest online open opposite ordinary original overall passionate
peaceful personal physical plain pleasant poor popular positive powerful present previous primary private professional
prominent proper public quick quiet rare raw red regular relaxing rich rough round rude sad safe scared scary serious
severe sharp shiny shy sick significant silly single slow smart smooth social soft solid southern stable steady
steep straight strange strict strong stupid stylish subtle successful sudden suitable surprising sweet tall tender
terrible thick thin tight tiny tired top total tough traditional tricky typical ugly unable unique unusual upcoming
upset urban urgent useful usual valuable various vast vibrant warm weak weird western wet wide wild wise worse worst
bubbly chilly costly curly daily deadly elderly ghostly monthly smelly weekly wobbly yearly
younger youngest yellow blue black white pink purple orange available
"""

_FAINT = """
afternoon amount area aspect behalf bunch case chance choice couple day detail difference effort end evening example
front goal idea item line list look matter member middle morning night note number opportunity option part people
person piece place point position purpose question range rate reason rest role sense side situation spot step term
thought type view whole
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


STOP_WORDS = frozenset(words(_FUNCTION, _NUMBERS, _INTERJECTIONS, _TALK, _VERBS, _OTHER_LANGUAGES))
"""Folded function words, words of small talk and the commonest verbs."""

ENGLISH_FUNCTION_WORDS = frozenset(words(_FUNCTION))
FUNCTION_WORDS = frozenset(words(_FUNCTION, _NUMBERS, _OTHER_LANGUAGES))
"""The function words and numbers alone."""

ACRONYMS_TOO = (frozenset(words(_OTHER_LANGUAGES)) | {"us"}) - (ENGLISH_FUNCTION_WORDS - {"us"})
"""Stop words that are acronyms when they are written in capitals: UN, LA, US."""

NUMBER_WORDS = frozenset(words(_NUMBERS))

INTERJECTIONS = frozenset(words(_INTERJECTIONS))
"""Words of address and exclamation: next to a name, never of it."""

WEAK_WORDS = frozenset(words(_WEAK))
"""Adjectives: they begin a noun phrase and neither end one nor say anything alone."""

FAINT_WORDS = frozenset(words(_FAINT))
"""Nouns that say nothing alone and something in a phrase: "idea", "spare part"."""

CONNECTORS = frozenset(words("of the de del della van von der den di da du des la le al el bin ibn zu ter dos das &"))
"""What may stand, in lower case, inside a capitalised name."""

ABBREVIATIONS = frozenset(words("dr mr mrs ms prof st mt jr sr lt gen col sgt capt rev hon ft vs inc ltd co corp"))
"""Words whose full stop ends no sentence."""
