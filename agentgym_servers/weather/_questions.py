"""The kinds of questions of the Weather world.

Each kind is a function that draws a question and answers it. It raises `Unfit` if the draw has several
answers, or if the weather makes the question pointless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import Question, listed, require, single_best, yes_or_no
from agentgym_servers.weather._climate import air_quality_level
from agentgym_servers.weather._question_builder import (
    NUMBER,
    WeatherQuestionBuilder,
    added,
    compared,
    dated,
    days_counted,
    exact_sum,
)

if TYPE_CHECKING:
    from agentgym_servers.weather._places import City

__all__ = ["KINDS"]

_LITTLE = 0.2  # millimetres or centimetres: less than this is rounded to 0

_YES_OR_NO = "Please answer with 'Yes' or 'No'."
_DATE = "Please provide the answer in the form of a date 'YYYY-MM-DD'."
_DATES = "Please provide the answer as a list of dates in the form ['YYYY-MM-DD']."
_CITY = "Please answer with the name of the city."
_COUNT = "Please provide the answer as a number."


def _mean_of_a_day(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    ago = builder.draw.between(1, 30)
    (day,) = builder.temperatures(place, -ago, -ago)
    when = "yesterday" if ago == 1 else f"{ago} days ago"
    return Question(
        f"What was the average temperature in Celsius {where} {when}? {NUMBER}",
        day.mean,
        reason=f"The mean temperature is {day.mean}.",
    )


def _highest_last_year(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    offset = builder.same_day_last_year()
    (day,) = builder.temperatures(place, offset, offset)
    return Question(
        f"What was the highest temperature in Celsius {where} on this day last year? {NUMBER}",
        day.highest,
        reason=f"The highest temperature is {day.highest}.",
    )


def _difference_tomorrow(builder: WeatherQuestionBuilder) -> Question:
    one, other = builder.place(), builder.place()
    which = builder.draw.one(("highest", "lowest"))
    values = [getattr(builder.temperatures(place, 1, 1)[0], which) for place in (one, other)]
    return Question(
        f"By how many degrees Celsius will the {which} temperature of tomorrow differ between {one.name} and "
        f"{other.name}? {NUMBER}",
        round(abs(values[0] - values[1]), 1),
        reason=f"The {which} temperature is {values[0]} in {one.name} and {values[1]} in {other.name}. "
        f"{max(values)} - {min(values)} = {round(abs(values[0] - values[1]), 1)}.",
    )


def _warmest_of_three_days(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    ago = sorted(builder.draw.some(range(1, 31), 3), reverse=True)
    days = [d for d in builder.temperatures(place, -ago[0], -ago[-1]) if (builder.today - d.date).days in ago]
    dates = ", ".join(str(day.date) for day in days[:-1])
    return Question(
        f"Which of the days {dates} and {days[-1].date} had the highest average temperature {where}? {_DATE}",
        str(single_best(days, lambda day: day.mean).date),
        reason=f"The mean temperatures: {dated(days, lambda day: day.mean)}. "
        f"The highest is {max(day.mean for day in days)}.",
    )


def _warmer_city(builder: WeatherQuestionBuilder) -> Question:
    places = [builder.place(), builder.place()]
    ahead = builder.draw.between(1, 14)
    days = {place.name: builder.temperatures(place, ahead, ahead)[0].mean for place in places}
    when = "tomorrow" if ahead == 1 else f"in {ahead} days"
    return Question(
        f"Which city will have the higher average temperature {when}: {places[0].name} or {places[1].name}? "
        f"{_CITY}",
        single_best(days, lambda name: days[name]),
        reason=compared("mean temperatures", days, "higher"),
    )


def _rain_so_far(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(2, 20)
    days = builder.rain(place, -count, -1)
    total = exact_sum(day.rain for day in days)
    require(total > _LITTLE)
    return Question(
        f"How many millimetres of rain fell {where} over the past {count} days, today not counted? {NUMBER}",
        total,
        reason=added("rain", (day.rain for day in days), total),
    )


def _will_it_rain(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    ahead = builder.draw.between(1, 20)
    (day,) = builder.rain(place, ahead, ahead)
    return Question(
        f"Will there be any rain {where} on {day.date}? {_YES_OR_NO}",
        yes_or_no(day.rain > 0),
        reason=f"The rain is {day.rain}, {'more than' if day.rain > 0 else 'so it is'} 0.",
    )


def _days_of_rain_to_come(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count, least = builder.draw.between(7, 25), builder.draw.one((0, 1, 2, 5))
    rainy = [day.rain for day in builder.rain(place, 1, count) if day.rain > least]
    require(bool(rainy))
    return Question(
        f"On how many of the next {count} days, beginning tomorrow, will more than {least} mm of rain fall "
        f"{where}? {_COUNT}",
        len(rainy),
        reason=f"The rain above {least}: {listed(rainy)}. {days_counted(len(rainy))}.",
    )


def _hot_days_to_come(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(5, 20)
    days = builder.temperatures(place, 1, count)
    limit = round(sorted(day.highest for day in days)[-builder.draw.between(2, 5)])
    hot = [day for day in days if day.highest > limit]
    require(bool(hot))
    return Question(
        f"On which of the next {count} days, beginning tomorrow, will the temperature {where} rise above "
        f"{limit} degrees Celsius? {_DATES}",
        [str(day.date) for day in hot],
        reason=f"Above {limit}: {dated(hot, lambda day: day.highest)}.",
    )


def _snow_so_far(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(3, 20)
    days = builder.snow(place, -count, -1)
    total = exact_sum(day.snow for day in days)
    require(total > _LITTLE)
    return Question(
        f"How many centimetres of snow fell {where} over the past {count} days, today not counted? {NUMBER}",
        total,
        reason=added("snow", (day.snow for day in days), total),
    )


def _most_snow(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(5, 25)
    day = single_best(builder.snow(place, 1, count), lambda day: day.snow)
    require(day.snow > 0)
    return Question(
        f"On which of the next {count} days, beginning tomorrow, will the most snow fall {where}? {_DATE}",
        str(day.date),
        reason=f"The most snow is {day.snow}, on {day.date}.",
    )


def _height(builder: WeatherQuestionBuilder) -> Question:
    place = builder.place()
    height = builder.height(place)
    return Question(
        f"How many metres above the sea is {place.name}? {_COUNT}",
        height,
        reason=f"The height of {place.name} is {height}.",
    )


def _height_difference(builder: WeatherQuestionBuilder) -> Question:
    place, other = builder.place(), builder.draw.one((builder.home, builder.place()))
    than = "where I am now" if other is builder.home else other.name
    high, low = builder.height(place), builder.height(other)
    require(high > low)
    return Question(
        f"How many metres higher is {place.name} than {than}? {_COUNT}",
        high - low,
        reason=f"The heights are {high} and {low}. {high} - {low} = {high - low}.",
    )


def _highest_city(builder: WeatherQuestionBuilder) -> Question:
    places = [builder.place() for _ in range(3)]
    heights = {place.name: builder.height(place) for place in places}
    return Question(
        f"Which of these cities is the highest above the sea: {_alternatives(places)}? {_CITY}",
        single_best(heights, lambda name: heights[name]),
        reason=compared("heights", heights, "highest"),
    )


def _distance(builder: WeatherQuestionBuilder) -> Question:
    place, other = builder.place(), builder.draw.one((builder.home, builder.place()))
    origin = "from me" if other is builder.home else f"from {other.name}"
    distance = builder.distance(other, place)
    return Question(
        f"How many kilometres away is {place.name} {origin}? {NUMBER}",
        distance,
        reason=f"The distance is {distance}.",
    )


def _nearest(builder: WeatherQuestionBuilder) -> Question:
    places = [builder.place(), builder.place()]
    distances = {place.name: builder.distance(builder.home, place) for place in places}
    return Question(
        f"I can travel to {places[0].name} or to {places[1].name}. Which is nearer to where I am now? "
        f"{_CITY}",
        single_best(distances, lambda name: -distances[name]),
        reason=compared("distances", distances, "nearer"),
    )


def _air_of_a_day(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    ago = builder.draw.between(0, 30)
    (day,) = builder.air(place, -ago, -ago)
    verb, when = ("is", "today") if ago == 0 else ("was", f"on {day.date}")
    return Question(
        f"What {verb} the air quality index {where} {when}? {_COUNT}",
        day.air,
        reason=f"The air quality index is {day.air}.",
    )


def _air_level(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    ago = builder.draw.between(0, 20)
    (day,) = builder.air(place, -ago, -ago)
    builder.level(day.air)
    verb, when = ("is", "today") if ago == 0 else ("was", f"{ago} days ago" if ago > 1 else "yesterday")
    return Question(
        f"What {verb} the air quality level {where} {when}? Please provide the answer as a string.",
        air_quality_level(day.air),
        reason=f"The level is {air_quality_level(day.air)}.",
    )


def _cleaner_air(builder: WeatherQuestionBuilder) -> Question:
    places = [builder.place(), builder.place()]
    indices = {place.name: builder.air(place, 0, 0)[0].air for place in places}
    return Question(
        f"Which city has the lower air quality index today: {places[0].name} or {places[1].name}? {_CITY}",
        single_best(indices, lambda name: -indices[name]),
        reason=compared("air quality indices", indices, "lower"),
    )


def _rain_and_snow(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(5, 28)
    rain, snow = builder.rain(place, -count, -1), builder.snow(place, -count, -1)
    both = [one.date for one, other in zip(rain, snow, strict=True) if one.rain > 0 and other.snow > 0]
    require(bool(both))
    return Question(
        f"On how many of the past {count} days, today not counted, did both rain and snow fall {where}? "
        f"{_COUNT}",
        len(both),
        reason=f"Both rain and snow: {listed(both)}. {days_counted(len(both))}.",
    )


def _warmer_than_before(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    offset, when = builder.draw.one(
        [
            (builder.same_day_last_year(), "the same day last year"),
            *((-n, f"{n} days ago") for n in range(2, 31)),
        ]
    )
    now, then = builder.temperatures(place, 0, 0)[0].mean, builder.temperatures(place, offset, offset)[0].mean
    answer = "higher" if now > then else "lower" if now < then else "same"
    return Question(
        f"How does the average temperature of today {where} compare to {when}? Please answer with 'higher', "
        "'lower' or 'same'.",
        answer,
        reason=f"The mean temperature is {now} today and was {then} then: {answer}.",
    )


def _range_of_today(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    (day,) = builder.temperatures(place, 0, 0)
    return Question(
        f"How many degrees Celsius lie between the lowest and the highest temperature of today {where}? "
        f"{NUMBER}",
        round(day.highest - day.lowest, 1),
        reason=f"{day.highest} - {day.lowest} = {round(day.highest - day.lowest, 1)}.",
    )


def _snow_of_cold_days(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count, limit = builder.draw.between(4, 20), builder.draw.one((-5, -2, 0, 1))
    days, snow = builder.temperatures(place, -count, -1), builder.snow(place, -count, -1)
    cold = [(day, each.snow) for day, each in zip(days, snow, strict=True) if day.mean < limit]
    total = exact_sum(each for _, each in cold)
    require(total > _LITTLE)
    return Question(
        f"How many centimetres of snow fell {where} in the past {count} days, today not counted, on days "
        f"with an average temperature below {limit} degrees Celsius? {NUMBER}",
        total,
        reason=f"Below {limit} with snow: {listed(day.date for day, each in cold if each)}. "
        + added("snow", (each for _, each in cold), total),
    )


def _coldest_day(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(4, 25)
    day = single_best(builder.temperatures(place, 1, count), lambda day: -day.lowest)
    return Question(
        f"Which of the next {count} days, beginning tomorrow, will be the one with the lowest temperature "
        f"{where}? {_DATE}",
        str(day.date),
        reason=f"The lowest temperature is {day.lowest}, on {day.date}.",
    )


def _average_of_days(builder: WeatherQuestionBuilder) -> Question:
    place, where = builder.somewhere()
    count = builder.draw.between(2, 15)
    days = builder.temperatures(place, 1, count)
    total = exact_sum(day.mean for day in days)
    mean = round(math.fsum(day.mean for day in days) / count, 6)
    return Question(
        f"What is the mean of the average temperatures in Celsius {where} of the next {count} days, "
        f"beginning tomorrow? {NUMBER}",
        mean,
        reason=added("mean temperatures", (day.mean for day in days), total)
        + f" {total} / {count} = {mean}.",
    )


def _rainier_city(builder: WeatherQuestionBuilder) -> Question:
    places, count = [builder.place(), builder.place()], builder.draw.between(3, 14)
    rain = {place.name: [day.rain for day in builder.rain(place, 1, count)] for place in places}
    totals = {name: exact_sum(amounts) for name, amounts in rain.items()}
    sums = [added(f"rain of {name}", amounts, totals[name]) for name, amounts in rain.items()]
    return Question(
        f"Which city will have more rain in all over the next {count} days, beginning tomorrow: "
        f"{places[0].name} or {places[1].name}? {_CITY}",
        single_best(totals, lambda name: totals[name]),
        reason=" ".join(sums),
    )


KINDS: Sequence[Callable[[WeatherQuestionBuilder], Question]] = (
    _mean_of_a_day,
    _highest_last_year,
    _difference_tomorrow,
    _warmest_of_three_days,
    _warmer_city,
    _rain_so_far,
    _will_it_rain,
    _days_of_rain_to_come,
    _hot_days_to_come,
    _snow_so_far,
    _most_snow,
    _height,
    _height_difference,
    _highest_city,
    _distance,
    _nearest,
    _air_of_a_day,
    _air_level,
    _cleaner_air,
    _rain_and_snow,
    _warmer_than_before,
    _range_of_today,
    _snow_of_cold_days,
    _coldest_day,
    _average_of_days,
    _rainier_city,
)
"""All kinds of questions; each draws a question, or raises `Unfit`."""


def _alternatives(places: Sequence[City]) -> str:
    return f"{', '.join(place.name for place in places[:-1])} or {places[-1].name}"
