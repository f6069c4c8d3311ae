"""The places of the Weather world: cities with their coordinates and heights, rounded."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CITIES", "PLACES", "City"]


@dataclass(frozen=True)
class City:
    """A city or a town.

    Attributes:
        name: Its name; several may have the same.
        country: The code of its country, of two letters (ISO 3166-1).
        latitude: Degrees north.
        longitude: Degrees east.
        height: Metres above the sea.
    """

    name: str
    country: str
    latitude: float
    longitude: float
    height: float


_CITIES = """
Amsterdam NL 52.37 4.89 3
Ankara TR 39.92 32.85 890
Athens GR 37.98 23.73 75
Auckland NZ -36.85 174.76 25
Bangkok TH 13.75 100.50 5
Barcelona ES 41.39 2.16 22
Beijing CN 39.91 116.40 50
Beirut LB 33.89 35.50 55
Belgrade RS 44.80 20.47 117
Bergen NO 60.39 5.32 20
Berlin DE 52.52 13.41 43
Bern CH 46.95 7.45 545
Birmingham GB 52.48 -1.90 145
Bogota CO 4.61 -74.08 2600
Boston US 42.36 -71.06 14
Brisbane AU -27.47 153.03 29
Brussels BE 50.85 4.35 28
Bucharest RO 44.43 26.11 84
Budapest HU 47.50 19.04 108
Buenos Aires AR -34.61 -58.38 31
Cairo EG 30.06 31.25 30
Calgary CA 51.05 -114.09 1048
Cape Town ZA -33.93 18.42 25
Caracas VE 10.49 -66.88 900
Casablanca MA 33.59 -7.62 30
Chicago US 41.85 -87.65 181
Copenhagen DK 55.68 12.57 10
Cusco PE -13.52 -71.98 3400
Dakar SN 14.69 -17.44 22
Dallas US 32.78 -96.81 131
Delhi IN 28.65 77.23 220
Denver US 39.74 -104.98 1609
Dublin IE 53.33 -6.25 17
Edinburgh GB 55.95 -3.20 80
Geneva CH 46.20 6.15 375
Hamburg DE 53.55 9.99 8
Hanoi VN 21.02 105.84 16
Havana CU 23.13 -82.38 50
Helsinki FI 60.17 24.94 26
Hong Kong HK 22.28 114.18 18
Innsbruck AT 47.26 11.39 574
Istanbul TR 41.01 28.95 39
Jakarta ID -6.21 106.85 8
Johannesburg ZA -26.20 28.04 1753
Kathmandu NP 27.70 85.32 1400
Kingston JM 18.00 -76.79 9
Kyoto JP 35.02 135.75 50
La Paz BO -16.50 -68.15 3640
Lagos NG 6.45 3.39 11
Lima PE -12.04 -77.03 154
Lisbon PT 38.72 -9.13 45
Ljubljana SI 46.05 14.51 295
London GB 51.51 -0.13 25
Madrid ES 40.42 -3.70 657
Manila PH 14.60 120.98 13
Melbourne AU -37.81 144.96 31
Mexico City MX 19.43 -99.13 2240
Milan IT 45.46 9.19 122
Minneapolis US 44.98 -93.26 262
Montreal CA 45.51 -73.59 36
Mumbai IN 19.07 72.88 14
Munich DE 48.14 11.58 524
Nairobi KE -1.28 36.82 1684
Naples IT 40.85 14.27 17
New York US 40.71 -74.01 10
Oslo NO 59.91 10.75 23
Ottawa CA 45.41 -75.70 71
Paris FR 48.85 2.35 42
Perth AU -31.95 115.86 20
Phoenix US 33.45 -112.07 331
Portland US 45.52 -122.68 15
Prague CZ 50.09 14.42 202
Quito EC -0.23 -78.52 2850
Reykjavik IS 64.14 -21.90 37
Riga LV 56.95 24.11 10
Rome IT 41.89 12.48 20
Salt Lake City US 40.76 -111.89 1288
San Francisco US 37.77 -122.42 16
Santiago CL -33.46 -70.65 556
Seattle US 47.61 -122.33 56
Seoul KR 37.57 126.98 38
Shanghai CN 31.22 121.46 12
Singapore SG 1.29 103.85 15
Stockholm SE 59.33 18.07 17
Sydney AU -33.87 151.21 58
Tallinn EE 59.44 24.75 9
Tokyo JP 35.69 139.69 44
Toronto CA 43.71 -79.40 175
Tromso NO 69.65 18.96 10
Vancouver CA 49.25 -123.12 70
Vienna AT 48.21 16.37 171
Vilnius LT 54.69 25.28 112
Warsaw PL 52.23 21.01 113
Wellington NZ -41.29 174.78 31
Zurich CH 47.37 8.55 429
"""

# Smaller places of the same names, which a search finds too, below the city that is meant.
_NAMESAKES = """
Athens US 33.96 -83.38 226
Berlin US 44.47 -71.19 309
Birmingham US 33.52 -86.80 183
Boston GB 52.98 -0.03 5
Dublin US 40.10 -83.11 254
Hamburg US 42.72 -78.83 251
Kingston CA 44.23 -76.48 93
Lima US 40.74 -84.11 267
Lisbon US 44.03 -70.10 54
London CA 42.98 -81.23 251
Madrid US 41.88 -93.82 306
Manila US 35.88 -90.17 74
Melbourne US 28.08 -80.61 6
Milan US 35.92 -88.76 128
Naples US 26.14 -81.79 3
Oslo US 48.20 -97.13 248
Paris US 33.66 -95.56 183
Perth GB 56.40 -3.43 15
Portland US 43.66 -70.26 14
Prague US 35.49 -96.69 302
Rome US 34.26 -85.16 187
Shanghai US 34.85 -87.09 190
Toronto US 40.46 -80.60 211
Vancouver US 45.64 -122.66 59
Vienna US 38.90 -77.26 118
Warsaw US 41.24 -85.85 252
"""


def _read(table: str) -> tuple[City, ...]:
    rows = (line.rsplit(maxsplit=4) for line in table.strip().splitlines())
    return tuple(
        City(name, country, float(latitude), float(longitude), float(height))
        for name, country, latitude, longitude, height in rows
    )


CITIES = _read(_CITIES)
"""The cities that tasks are about, each of another name."""

PLACES = (*CITIES, *_read(_NAMESAKES))
"""All places, the more important ones first."""
