"""English given names and their nicknames."""

from __future__ import annotations

from graph.stopwords import words

_NICKNAMES = """
abigail: abby gail; abraham: abe; albert: al bert bertie; alexander: alex al xander sasha lex;
alexandra: alex sasha lexi; alexis: alex lexi; alfred: al alf alfie fred freddie; alison: ali ally;
allison: ali allie; amanda: mandy; amelia: millie; andrea: andy; andrew: andy drew; angela: angie; anthony: tony;
antonio: tony; arthur: art artie; barbara: barb barbie babs; bartholomew: bart; benjamin: ben benny benji;
bernard: bernie; bradley: brad; brandon: bran; calvin: cal; cameron: cam; carolina: caro; caroline: caro carrie;
catherine: cathy cate kate katie kitty cat; charles: charlie chuck chas; charlotte: charlie lottie;
christina: chris christie tina chrissy; christine: chris christie tina chrissy; christopher: chris topher kit;
clifford: cliff; constance: connie; cynthia: cindy; daniel: dan danny; danielle: dani; david: dave davey;
deborah: deb debbie; dennis: den denny; dominic: dom; donald: don donnie; dorothy: dot dottie dolly; douglas: doug;
edith: edie; edmund: ed eddie ned; edward: ed eddie ted teddy ned; edwin: ed eddie; eleanor: ellie nell;
elizabeth: liz lizzie lizzy beth betty bess betsy libby liza; ella: ellie; emily: em emmy millie; emma: em emmy;
eugene: gene; evelyn: evie; ezekiel: zeke; florence: flo flossie; frances: fran frankie franny;
francis: frank frankie; franklin: frank; frederick: fred freddie freddy; gabriel: gabe; gabriella: gabby;
gabrielle: gabby; geoffrey: geoff; gerald: gerry jerry; gerard: gerry; gilbert: gil bert; gregory: greg;
gwendolyn: gwen; harold: harry hal; harriet: hattie; helen: nell; henrietta: etta hettie; henry: harry hank hal;
herbert: herb bert; howard: howie; isaac: ike; isabella: bella izzy; isabelle: belle izzy; jacob: jake;
jacqueline: jackie; james: jim jimmy jamie; janet: jan; jasmine: jas; jeffrey: jeff; jennifer: jen jenny jenn;
jeremiah: jerry; jeremy: jez jerry; jessica: jess jessie; joan: joanie; joanna: jo; john: johnny jack jon;
jonathan: jon jonny johnny; joseph: joe joey; josephine: jo josie; joshua: josh; judith: judy; julia: jules;
julian: jules; katherine: kate katie kathy kat kitty kay; kathleen: kathy kath kate; kathryn: kate katie kathy;
kenneth: ken kenny; kimberly: kim; kristina: kris tina kristy; kristen: kris kristy; lawrence: larry laurie;
leonard: leo len lenny; leonardo: leo; lillian: lil lily; madeleine: maddie; madeline: maddie; madison: maddie;
magdalena: lena magda; margaret: maggie meg peggy marge margie; martha: marty; martin: marty; matilda: tilly mattie;
matthew: matt matty; maximilian: max; maxwell: max; megan: meg; melanie: mel; melinda: mel mindy;
melissa: mel missy lissa; melvin: mel; michael: mike mikey mick mickey; michelle: shelly; mildred: millie;
mitchell: mitch; montgomery: monty; natalie: nat; natasha: tasha nat; nathan: nate nat; nathaniel: nate nat;
nicholas: nick nicky nico; nicole: nicky nikki; olivia: liv livvy; oliver: ollie; pamela: pam;
patricia: pat patty tricia trish; patrick: pat paddy; penelope: penny nell; peter: pete; philip: phil pip;
phillip: phil; prudence: pru; rachel: rach; randall: randy; randolph: randy; raymond: ray; rebecca: becky becca;
reginald: reg reggie; richard: rick ricky rich richie dick; robert: rob bob robbie bobby bert; roberta: bobbie;
roderick: rod; rodney: rod; ronald: ron ronnie; rosemary: rosie; rudolph: rudy; russell: russ; samantha: sam sammy;
samuel: sam sammy; sebastian: seb; sharon: shaz; sidney: sid; sophia: sophie; stanley: stan; stephanie: steph stephie;
stephen: steve; steven: steve; stewart: stew; stuart: stu; susan: sue susie suzie; susannah: sue susie;
suzanne: sue suzie; sylvester: sly; tabitha: tabby; terence: terry; teresa: terry tess tessa;
theodore: ted teddy theo; theresa: terry tess tessa; thomas: tom tommy; timothy: tim timmy; tobias: toby;
valerie: val; vanessa: nessa; veronica: ronnie roni; victor: vic; victoria: vicky tori; vincent: vince vinny;
virginia: ginny; vivian: viv; walter: walt wally; wesley: wes; wilfred: wilf; wilhelmina: mina;
william: will bill billy willy; winifred: winnie; zachary: zach zack
"""

_OTHERS = """
aaron adam adrian agnes ahmed aisha alan alice alicia amir amy ana anders andre angelo anita ann anna anne annie aria
ariel arjun audrey ava beatrice bella benedict bianca blake boris brenda brian bruce bruno bryan camille carl carla
carlos carmen carol cecilia cedric celia chad chloe claire clara clare claudia colin cora craig dafydd daisy damian
dana darren dean deepak diana diego dina dmitri donna doris dylan earl edgar elaine elena eliana elias elijah eliza
ella elliot ellis elsa emil emilia emilio enrique eric erica erik erika erin esther ethan eva evan eve faith fatima
felipe felix fernando fiona gareth gary gavin george georgia gianna gina giovanni gloria gordon grace graham greta
gustavo hannah haruka hassan hazel heather hector heidi hope hugh hugo ian ibrahim igor ines ingrid irene isabel ivan
jade jane jared jason javier jayden jean jenna jesse jill joel jolene jonas jordan jorge jose joy juan juanita judy
julie julio justin kai kamal karen karin karl katja keith kelly kevin kirsten kristin kumar kyle lara lars laura
lauren leah leila leon leslie lewis liam lidia linda linnea lisa liza logan lorenzo louis louise luca lucas lucia lucy
luigi luis luke luna lydia mabel manuel marco marcus margit maria marian marianne marie marina mario marisa mark marta
mateo maurice may maya mia miguel mila milan miranda miriam mohamed mohammed molly monica morgan muhammad nadia nancy
naomi neil nelson nia nicola nicolas nigel nina noah noel nolan nora norma olga olive omar oscar otto owen pablo paige
patrice paul paula pedro phoebe pierre polly priya rae rafael raj ramon ravi rhys rita roberto roger romeo rosa rosalind
rose ross roy ruth ryan sally salma samir sandeep sandra sanjay santiago sara saul scott sean selena serena sergio
seth shane shannon sheila shirley silvia simon simone sofia sonia stella sven sylvia tamara tanya tara tariq tatiana
terrence thea tim tina todd tomas tomasz tracy trevor troy ursula valentina vera vijay viktor vivienne vladimir wanda
warren wayne wendy xavier yolanda yusuf yvonne zoe
"""

ORDINARY_NAMES = frozenset(
    words(
        "abe al ally aria art barb belle bill bran cal cam carol carolina cat chuck cliff cora daisy dean den"
        " dick dolly don dot drew earl ed em eve faith fran frank gail gene georgia gil grace hal hank hazel"
        " heather herb hope ike jack jade jan jasmine jean jess jo jordan joy kai kay ken kit kitty len lena lil"
        " lily liv logan luna madison marge marina mark max may mick mina missy morgan nat ned nick norma olive"
        " pat patty penny pip rae ray reg rich rick rob rod roger romeo rose rosemary ross sally sly stella stew"
        " sue tabby tilly troy val vera vic virginia viv will winnie"
    )
)
"""Names that are also words: they count as names only with a capital inside a sentence."""

FORMAL_NAMES: dict[str, frozenset[str]] = {}
"""Full given names by nickname, folded: "mel" -> melanie, melinda, melissa, melvin."""

NICKNAMES: dict[str, frozenset[str]] = {}
"""Nicknames by full given name: "michael" -> mike, mikey, mick, mickey."""

for _entry in _NICKNAMES.split(";"):
    _formal, _short = map(str.strip, _entry.split(":"))
    NICKNAMES[_formal] = frozenset(_short.split())
    for _nickname in _short.split():
        FORMAL_NAMES[_nickname] = FORMAL_NAMES.get(_nickname, frozenset()) | {_formal}

GIVEN_NAMES = frozenset(words(_OTHERS)) | NICKNAMES.keys() | FORMAL_NAMES.keys()
"""All known given names and nicknames, folded."""

PLAIN_GIVEN_NAMES = frozenset(GIVEN_NAMES - ORDINARY_NAMES)
"""Names that are hardly ever anything else, even in lower case."""
