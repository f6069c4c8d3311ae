"""The words that the accounts of the TODOList server are made of."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CITIES", "PROJECTS", "Chore"]


class Chore(NamedTuple):
    """A task as it may stand in a project.

    Attributes:
        content: What is to be done.
        place: Where.
        bring: What to bring along.
    """

    content: str
    place: str
    bring: str


CITIES = ("Lisbon", "Oslo", "Toronto", "Nairobi", "Osaka", "Lyon", "Porto Alegre", "Perth")
"""Where a user may be."""

PROJECTS: dict[str, tuple[Chore, ...]] = {
    "Bicycle Repair": (
        Chore("Replace the rear brake pads", "the shed", "a hex key"),
        Chore("Oil the chain", "the back yard", "a rag"),
        Chore("Patch the front tube", "the shed", "a repair kit"),
        Chore("Adjust the gear cable", "the bicycle kitchen", "a screwdriver"),
        Chore("True the rear wheel", "the bicycle kitchen", "a spoke wrench"),
    ),
    "Moving House": (
        Chore("Hand over the old keys", "the letting office", "both key rings"),
        Chore("Pack the bookshelves", "the old flat", "ten strong boxes"),
        Chore("Read the electricity meter", "the new cellar", "a torch"),
        Chore("Register the new address", "the town hall", "the rental contract"),
        Chore("Return the rental van", "the van depot", "the fuel receipt"),
        Chore("Measure the kitchen window", "the new flat", "a tape measure"),
    ),
    "Garden Season": (
        Chore("Sow the early carrots", "the south bed", "a seed packet"),
        Chore("Prune the apple tree", "the orchard corner", "a pruning saw"),
        Chore("Build the compost bin", "the north fence", "a hammer"),
        Chore("Fix the rain barrel", "the greenhouse wall", "a new tap"),
        Chore("Thin out the beetroot", "the south bed", "garden gloves"),
    ),
    "Choir Concert": (
        Chore("Copy the alto parts", "the parish library", "the score"),
        Chore("Book the piano tuner", "the concert hall", "the tuner's card"),
        Chore("Print the programmes", "the copy shop", "a memory stick"),
        Chore("Lead the warm-up", "the rehearsal room", "a tuning fork"),
        Chore("Collect the black folders", "the parish library", "the loan list"),
    ),
    "Tax Return": (
        Chore("Sort the travel receipts", "the study", "a hole punch"),
        Chore("Download the wage slip", "the office portal", "the access token"),
        Chore("Call the tax adviser", "the study", "last year's notice"),
        Chore("Scan the donation letters", "the copy shop", "the blue folder"),
        Chore("Sign the declaration", "the tax office", "an identity card"),
    ),
    "Amateur Theatre": (
        Chore("Paint the backdrop", "the scenery store", "two wide brushes"),
        Chore("Learn the second act", "the town park", "the script"),
        Chore("Hem the grey coats", "the sewing room", "a pin cushion"),
        Chore("Hang the spotlights", "the main stage", "a safety rope"),
        Chore("Count the ticket money", "the box office", "the cash book"),
        Chore("Record the thunder", "the old mill", "a microphone"),
    ),
    "Chess Club": (
        Chore("Pair the first round", "the club room", "the entry list"),
        Chore("Replace the broken clock", "the hobby shop", "the guarantee"),
        Chore("Analyse the rook ending", "the club room", "a pocket board"),
        Chore("Invite the school team", "the grammar school", "the posters"),
        Chore("Polish the trophy", "the engraver", "a soft cloth"),
    ),
    "Kitchen Renovation": (
        Chore("Choose the floor tiles", "the tile market", "a colour chart"),
        Chore("Disconnect the old stove", "the kitchen", "a circuit tester"),
        Chore("Seal the worktop", "the kitchen", "a brush and oil"),
        Chore("Order the drawer handles", "the joinery", "a sample handle"),
        Chore("Insulate the outer wall", "the north wall", "a dust mask"),
    ),
    "Marathon Training": (
        Chore("Run the long loop", "the lake path", "a water bottle"),
        Chore("Do hill repeats", "the castle hill", "a stopwatch"),
        Chore("See the physiotherapist", "the clinic", "the referral"),
        Chore("Collect the start number", "the sports hall", "the confirmation"),
        Chore("Stretch with the group", "the stadium lawn", "a mat"),
    ),
    "Book Exhibition": (
        Chore("Label the glass cases", "the reading room", "a label printer"),
        Chore("Insure the atlases", "the insurance office", "the inventory"),
        Chore("Hang the map panels", "the east gallery", "a spirit level"),
        Chore("Write the wall texts", "the archive", "the catalogue"),
        Chore("Guide the opening tour", "the east gallery", "a name badge"),
        Chore("Photograph the bindings", "the archive", "a grey card"),
    ),
    "Dog Sitting": (
        Chore("Walk along the canal", "the canal bank", "a long lead"),
        Chore("Buy the grain-free food", "the pet shop", "the brand name"),
        Chore("Trim the claws", "the dog salon", "some treats"),
        Chore("Refresh the vaccination", "the animal clinic", "the pet passport"),
        Chore("Practise the recall", "the fenced meadow", "a whistle"),
    ),
    "Radio Workshop": (
        Chore("Solder the amplifier board", "the maker space", "thin solder"),
        Chore("Cut the opening jingle", "the small studio", "headphones"),
        Chore("Interview the beekeeper", "the allotments", "a recorder"),
        Chore("Test the antenna", "the water tower", "a field meter"),
        Chore("Archive the spring shows", "the small studio", "an empty disk"),
    ),
    "Village Festival": (
        Chore("Reserve the marquee", "the fire station", "the deposit"),
        Chore("Bake the plum cake", "the community kitchen", "four baking trays"),
        Chore("Draw the raffle tickets", "the market square", "a glass bowl"),
        Chore("Mark the parking field", "the mill meadow", "white tape"),
        Chore("Thank the volunteers", "the parish hall", "the address list"),
    ),
    "Language Course": (
        Chore("Write the holiday essay", "the evening school", "a dictionary"),
        Chore("Review the irregular verbs", "the train", "flash cards"),
        Chore("Meet the exchange partner", "the harbour cafe", "a photo album"),
        Chore("Take the level test", "the test centre", "two pencils"),
        Chore("Listen to the radio play", "the language lab", "earphones"),
        Chore("Pay the course fee", "the evening school", "the invoice"),
    ),
}
"""Names of projects, with the tasks that may stand in each. No task stands in two of them."""
