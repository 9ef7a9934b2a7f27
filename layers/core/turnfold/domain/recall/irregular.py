"""English forms that no rule of endings leads back to their word."""

_FORMS = """
be: been
beat: beaten
become: became
begin: began begun
bite: bit bitten
blow: blew blown
break: broke broken
bring: brought
build: built
buy: bought
catch: caught
child: children
choose: chose chosen
come: came
deal: dealt
dig: dug
draw: drew drawn
dream: dreamt
drink: drank drunk
drive: drove driven
eat: ate eaten
fall: fell fallen
feed: fed
feel: felt
fight: fought
find: found
fly: flew flown
foot: feet
forget: forgot forgotten
forgive: forgave forgiven
freeze: froze frozen
get: got gotten
give: gave given
go: went gone
grow: grew grown
hang: hung
hear: heard
hide: hid hidden
hold: held
keep: kept
know: knew known
lead: led
learn: learnt
lend: lent
lose: lost
make: made
man: men
mean: meant
meet: met
mouse: mice
pay: paid
person: people
ride: rode ridden
ring: rang rung
rise: rose risen
run: ran
say: said
sell: sold
send: sent
shake: shook shaken
shine: shone
shoot: shot
show: shown
sing: sang sung
sink: sank sunk
sit: sat
sleep: slept
speak: spoke spoken
spend: spent
stand: stood
steal: stole stolen
stick: stuck
swim: swam swum
take: took taken
teach: taught
tell: told
think: thought
throw: threw thrown
tooth: teeth
understand: understood
wake: woke woken
wear: wore worn
win: won
woman: women
write: wrote written
"""

BASE_FORMS = {
    form: base
    for line in _FORMS.strip().splitlines()
    for base, _, forms in [line.partition(": ")]
    for form in forms.split()
}
"""The word that a form belongs to. Forms that are words of their own as well (left, saw, felt a
cloth) are listed only where the verb is by far the more frequent."""
