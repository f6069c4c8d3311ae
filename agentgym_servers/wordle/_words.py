"""The words that the local Wordle server knows: common English words of five letters."""

from __future__ import annotations

__all__ = ["WORDS"]

_TEXT = """\
abbey abide abode about above abuse acorn actor acute adapt admit adopt adore adorn adult after again agent
agile aging agony agree ahead aisle alarm album alert algae alibi alien align alike alive allay alley allow
alloy aloft alone along aloof aloud alpha altar alter amber amend amino among ample amuse angel anger angle
angry angst anime ankle annex annoy anvil aorta apart apnea apple apply apron aptly arbor ardor arena argue
arise armor aroma array arrow aside aspen assay asset atlas atoll atone attic audio audit avail avert avian
avoid await awake award aware awful awoke axiom azure
babel bacon badge badly bagel baker balmy banal banjo barge baron basic basil basin batch bathe baton bayou
beach beady beard beast beech befit beget begin beige being belch belie belly below bench beret berry bevel
bible bigot binge bingo birch birth bison black blade blame bland blank blare blast blaze bleak bleat bleed
blend bless blimp blind blink bliss bloat block bloke blond blood bloom blown bluff blunt blurb blurt blush
board boast bogus bonus boost booth boozy bored botch bough bound bowel boxer brace braid brain brake brand
brash brass brave bravo brawl brawn bread break breed briar bribe brick bride brief brine bring brink brisk
broad broil broke brook broom broth brown brunt brush brute buddy budge buggy bugle build built bulge bulky
bunch bunny burly burnt burst buyer
cabal cabin cable cacao cache cadet camel canal candy canny canoe caper cargo carol carry carve caste catch
cater caulk cause cease cedar chafe chaff chain chair chalk champ chant chaos charm chart chase chasm cheap
cheat check cheek cheer chess chest chick chide chief child chili chill chime china chirp choir choke chord
chore chose chunk cider cigar cinch civic civil claim clamp clang clash clasp class clean clear cleft clerk
click cliff climb cling cloak clock clone close cloth cloud clove clown cluck clump coach coast cobra cocoa
colon color comet comic comma coral couch cough could count court coven cover covet cower crack craft cramp
crane crank crash crass crate crave crawl crazy cream creed creek creep crepe crest crick crime crimp crisp
croak crock crony cross croup crowd crown crude cruel crumb crush crust crypt cubic cumin curly curry curse
curve cycle cynic
daily dairy daisy dance dandy dated daunt dealt death debit debug debut decal decay decor decoy decry defer
deign deity delay delta delve demon denim dense depot depth derby deter detox devil diary diner dirge dirty
disco ditch ditty diver dizzy dodge dogma dolly donor doubt dough dowry dozen draft drain drake drama drank
drape drawn dread dream dress dried drift drill drink drive droll drone drool droop drown dusty duvet dwarf
dwell
eager eagle early earth easel eaten ebony edict edify eerie eight elate elbow elder elect elegy elite elope
elude email embed ember emery emote empty enact enemy enjoy ensue enter entry envoy epoch equal equip erase
erode error erupt essay ester ether ethic evade event every evict evoke exact exalt excel exert exile exist
expel extol extra
fable facet faint fairy faith false fancy fatal fault favor feast feign fence feral ferry fetch fever fiber
field fiery fifth fifty fight filth final finch first fixed fjord flail flair flake flame flank flare flash
flask fleet flesh flick fling flint float flock flood floor flora flour flown fluff fluid flung flunk flush
flute foamy focal focus foggy foist folio folly foray force forge forth forty forum found foyer frail frame
frank fraud freak fresh friar fried frill frisk frond front frost frown froze fruit fudge fugue fully fungi
funny furry fuzzy
gaffe gamma gaudy gauge gaunt gavel gecko genie genre genus ghost giant giddy given giver glade gland glare
glass glaze gleam glide globe gloom glory gloss glove glyph gnome godly going golem goose gorge gouge gourd
grace grade grail grain grand grant grape graph grasp grass grate grave gravy graze great greed green greet
grief grill grind gripe groan groin groom grope gross group grove growl grown gruel gruff grunt guard guava
guess guest guide guild guilt guise gully gusto gusty
habit hairy handy happy hardy harsh haste hasty hatch hater haunt haven havoc hazel heady heart heath heavy
hedge hefty heist helix hello hence heron hinge hippo hippy hoard hobby hoist holly honey honor horse hotel
hound house hover human humid humor hurry husky hutch hydro hyena
icily icing ideal idiom igloo image impel imply inane inbox incur index inept inert infer ingot inlet inner
input inter ionic irate irony islet issue itchy ivory
jaunt jelly jerky jewel joint joker jolly joust judge juice juicy jumbo jumpy junta
karma kayak kebab khaki kiosk knack knead kneel knelt knife knock knoll known koala krill
label labor laden ladle lance lapel large larva laser latch later lathe laugh layer leach leafy leapt learn
lease leash least leave ledge leech legal lemon lemur level lever libel liege light lilac limbo limit linen
liner lingo lithe liver llama loath lobby local locus lodge lofty logic loose lorry loser lotus lousy lover
lower loyal lucid lucky lumen lunar lunch lupus lurch lusty lymph lyric
macho macro mafia magic magma maize major manga mango manic manor maple march marry marsh match maxim mayor
meant meaty medal media medic melee melon mercy merge merit merry messy metal meter metro micro midst might
mimic mince miner minor minty minus mirth miser misty mixed mixer mocha model modem mogul moist molar moldy
money month moose moral motel motif motor motto moult mound mount mourn mouse mouth moved mover movie mucus
muddy mulch mummy mural mushy music musty
nadir naive nanny nasal nasty natal naval navel needy nerdy nerve never newer newly nicer niche niece night
ninja ninny ninth noble noise noisy nomad north nosey notch novel nudge nurse nylon
oaken oasis ocean octet offal offer often olive omega onion onset opera opine opium optic orbit order organ
other otter ought ounce outdo outer ovary ovate overt owing ozone
paddy pagan paint paled panda panel panic paper parka parry party pasta paste patch patio patsy pause payee
peace peach pearl pecan pedal penal penny perch peril perky pesky petal petty phase phone photo piano piece
piety pilot pinch pinto piper pique pitch pivot pixel pizza place plaid plain plait plane plank plant plate
plaza plead pleat plied plier pluck plumb plume plump plunk plush poach point poise poker polar polka polyp
porch posse pouch pound pouty power prank prawn press price pride prime print prior prism prize probe prone
proof prose proud prove prowl proxy prude prune psalm pudgy pulse punch pupil puppy puree purse pushy
quack quail quake qualm quart quash quasi queen quell query quest queue quick quiet quill quilt quirk quota
quote
rabbi rabid racer radar radio rainy raise rally ramen ranch range rapid ratio raven razor reach react ready
realm rebel reedy refer regal rehab reign relax relay relic remit renew repay repel reply reset resin retro
reuse revel revue rhino rhyme rider ridge rifle right rigid rinse risen risky rival river rivet roach roast
robin robot rocky rodeo rogue roost rotor rouge rough round route rover rowdy royal ruddy rugby ruler rumor
rural rusty
saber saint salad salon salsa salty salve sandy sappy sassy satin sauce sauna savor savvy scald scale scalp
scamp scant scarf scary scene scent scone scoop scope score scorn scour scout scowl scram scrap screw scrub
scrum sedan seize sense sepia serum serve seven sever shade shady shaft shake shaky shall shame shank shape
shard share shark sharp shave shawl shear sheep sheer sheet shelf shell shied shift shine shiny shire shirt
shoal shock shone shook shore shorn short shout shove shown showy shred shrew shrub shrug shuck siege sight
sigma silky silly since sinew singe siren sixth sixty skate skiff skill skimp skirt skulk skull skunk slack
slain slang slant slash slate sleek sleep sleet slept slice slick slide slime slimy sling slope slosh sloth
slump slurp slush small smart smash smell smile smirk smoke smoky snack snail snake snare snarl sneak sneer
sniff snipe snore snort snout snowy snuff soapy sober soggy solar solid solve sonar sonic sorry sound south
space spade spare spark spasm spawn speak spear speck speed spell spend spent spice spicy spike spill spine
spiny spite split spoil spoke spool spoon spore sport spout spray spree sprig spurn spurt squad squat squib
squid stack staff stage staid stain stair stake stale stalk stall stamp stand stare stark start state stave
stead steak steal steam steed steel steep steer stein stern stick stiff still stilt sting stink stint stock
stoic stoke stole stomp stone stood stool stoop store stork storm story stout stove strap straw stray strip
strut study stuff stump stung stunt style suave suede sugar suite sulky sunny super surge surly sushi swamp
swarm swath swear sweat sweep sweet swell swept swift swill swine swing swirl swish swoon swoop sword sworn
swung synod syrup
tabby table taboo tacit tacky taffy taken talky talon tamer tango tangy taper tapir tardy tarot taste tasty
tatty taunt taupe tawny teach teary tempo tempt tenor tense tenth tepee tepid terse thank theft theme there
thick thief thigh thing think third thong thorn those three threw throb throw thumb thump tiara tidal tiger
tight tilde timid tipsy tired titan tithe title toast today token tonal tonic tooth topaz topic toque torch
torso total totem touch tough towel tower toxic trace track tract trade trail train trait tramp trash trawl
tread treat trend triad trial tribe trice trick tried tripe trite troll troop trout trove truce truck truly
trump trunk truss trust truth tryst tuber tulip tulle tumor tunic turbo tutor twang tweak tweed tweet twice
twine twirl twist
udder ulcer ultra uncle under undue unfit unify union unite unity until unzip upper upset urban usage usher
usual usurp utter
vague valet valid valor value valve vapor vault vegan venal venom venue verge verse vicar video vigil vigor
villa vinyl viola viper viral virus visit visor vital vivid vocal vodka vogue voice voila voter vouch vowel
vying
wacky wafer wager wagon waist waltz warty waste watch water waxen weary weave wedge weigh weird whack whale
wharf wheat wheel where which whiff while whine whirl whirr whisk white whole whose widen wider widow width
wield wimpy wince winch windy witch witty woken woman women woody wooly wordy world worry worse worst worth
would wound woven wrack wrath wreak wreck wring wrist write wrong wrote wrung
yacht yearn yeast yield yodel yokel young youth yummy
zebra zesty zonal
"""

WORDS: tuple[str, ...] = tuple(_TEXT.split())
"""All of them, in alphabetical order."""
