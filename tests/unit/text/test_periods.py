"""The times that queries mean, asked on Thursday 15 June 2023 at 18:30."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from retrieval.text.time.periods import MOST_PERIODS, Period, find_periods

ASKED_AT = datetime(2023, 6, 15, 18, 30, tzinfo=UTC)

# The query, the expression in it, and the interval: days as dates, other moments with their time.
ONE_PERIOD = [
    # Days
    ("Who came to dinner on May 3, 2023?", "May 3, 2023", "2023-05-03/2023-05-04"),
    ("who came to dinner on may 3 2023", "may 3 2023", "2023-05-03/2023-05-04"),
    ("What broke on 3 May 2023?", "3 May 2023", "2023-05-03/2023-05-04"),
    ("What broke on the 3rd of May, 2023?", "3rd of May, 2023", "2023-05-03/2023-05-04"),
    ("notes of 21st november 2022", "21st november 2022", "2022-11-21/2022-11-22"),
    ("the call on Sept. 9, 2022", "Sept. 9, 2022", "2022-09-09/2022-09-10"),
    ("the call on 9 Dec 2022", "9 Dec 2022", "2022-12-09/2022-12-10"),
    ("On May 2: whom did I call?", "May 2", "2023-05-02/2023-05-03"),
    ("In 2019: whom did I call?", "2019", "2019-01-01/2020-01-01"),
    ("deploy log 2023-05-03", "2023-05-03", "2023-05-03/2023-05-04"),
    ("What failed at 2023-05-03T10:15?", "2023-05-03", "2023-05-03/2023-05-04"),
    ("invoice from 5/3/2023", "5/3/2023", "2023-05-03/2023-05-04"),
    ("invoice from 13/5/2023", "13/5/2023", "2023-05-13/2023-05-14"),
    ("invoice from 03.05.2023", "03.05.2023", "2023-05-03/2023-05-04"),
    ("invoice from 12/31/22", "12/31/22", "2022-12-31/2023-01-01"),
    ("invoice from 31/12/99", "31/12/99", "1999-12-31/2000-01-01"),
    ("What did Ada bake on May 3rd?", "May 3rd", "2023-05-03/2023-05-04"),
    ("What did we discuss on May eleventh?", "May eleventh", "2023-05-11/2023-05-12"),
    ("What did we discuss on the first of May?", "first of May", "2023-05-01/2023-05-02"),
    ("What did we discuss May first?", "May first", "2023-05-01/2023-05-02"),
    ("Who came on the twenty-eighth of May?", "twenty-eighth of May", "2023-05-28/2023-05-29"),
    (
        "Said April 3rd through May twenty-first?",
        "April 3rd through May twenty-first",
        "2023-04-03/2023-05-22",
    ),
    ("What did we discuss on mar 3?", "mar 3", "2023-03-03/2023-03-04"),
    ("the November 20 rehearsal", "November 20", "2022-11-20/2022-11-21"),
    ("Who comes to the July 4 picnic?", "July 4", "2023-07-04/2023-07-05"),
    ("Who was born on February 29?", "February 29", "2020-02-29/2020-03-01"),
    ("the workshop of May 3-5, 2022", "May 3-5, 2022", "2022-05-03/2022-05-06"),
    ("the workshop of 3–5 May 2022", "3–5 May 2022", "2022-05-03/2022-05-06"),
    ("the workshop of May 3 to 5, 2022", "May 3 to 5, 2022", "2022-05-03/2022-05-06"),
    ("the workshop of 3 to 5 May 2022", "3 to 5 May 2022", "2022-05-03/2022-05-06"),
    ("the workshop of the 3rd to the 5th of May 2022", "3rd to the 5th of May 2022", "2022-05-03/2022-05-06"),
    ("Who came on the 3rd and 5th of May?", "3rd and 5th of May", "2023-05-03/2023-05-06"),
    ("Who came on May 3 and 4, 2022?", "May 3 and 4, 2022", "2022-05-03/2022-05-05"),
    ("Who came between May 3 and 5, 2022?", "May 3 and 5, 2022", "2022-05-03/2022-05-06"),
    ("Who came between May 3 and 5 June 2022?", "between May 3 and 5 June 2022", "2022-05-03/2022-06-06"),
    ("Who drove on May 3 to 8 people?", "May 3", "2023-05-03/2023-05-04"),
    ("What is due on 3 May '26?", "3 May '26", "2026-05-03/2026-05-04"),
    ("Who came on 3 May '22?", "3 May '22", "2022-05-03/2022-05-04"),
    ("Who came on 3 May 22?", "3 May 22", "2022-05-03/2022-05-04"),
    ("Who came on 3 May 22:30?", "3 May", "2023-05-03/2023-05-04"),
    ("On 3 May 22 people came where?", "3 May", "2023-05-03/2023-05-04"),
    ("What happened on 4 July \u201976?", "4 July \u201976", "1976-07-04/1976-07-05"),
    ("Where were we on Tuesday, May 2, 2023?", "May 2, 2023", "2023-05-02/2023-05-03"),
    ("Was the treaty signed on July 4, 1776?", "July 4, 1776", "1776-07-04/1776-07-05"),
    # Months, quarters, seasons, years
    ("Which books did I finish in March 2022?", "March 2022", "2022-03-01/2022-04-01"),
    ("Which books did I finish in March of last year?", "March of last year", "2022-03-01/2022-04-01"),
    ("my steps for 2023-04", "2023-04", "2023-04-01/2023-05-01"),
    ("the offsite, Oct 2022", "Oct 2022", "2022-10-01/2022-11-01"),
    ("What did we ship in Q3 2022?", "Q3 2022", "2022-07-01/2022-10-01"),
    ("What did we ship in Q1/2022?", "Q1/2022", "2022-01-01/2022-04-01"),
    ("What did we ship in Q1, 2022?", "Q1, 2022", "2022-01-01/2022-04-01"),
    ("What did we ship from Q3 to Q1 2022?", "from Q3 to Q1 2022", "2021-07-01/2022-04-01"),
    ("What did we ship in Q1-Q3 2022?", "Q1-Q3 2022", "2022-01-01/2022-10-01"),
    ("What did we ship in Q3?", "Q3", "2022-07-01/2022-10-01"),
    ("What was shipped in Q2 and by whom?", "Q2", "2023-04-01/2023-07-01"),
    ("What did we ship since Q1?", "since Q1", "2023-01-01/2023-06-16"),
    ("revenue of the second quarter of 2022", "second quarter of 2022", "2022-04-01/2022-07-01"),
    ("Where did they hike in summer 2022?", "summer 2022", "2022-06-01/2022-09-01"),
    ("Where did they hike in the fall of 2021?", "fall of 2021", "2021-09-01/2021-12-01"),
    ("What did she knit in winter 2022?", "winter 2022", "2022-12-01/2023-03-01"),
    ("What will she knit in winter 2023?", "winter 2023", "2022-12-01/2023-03-01"),
    ("What did she knit in winter 2021-2022?", "winter 2021-2022", "2021-12-01/2022-03-01"),
    ("What did she knit in the winter of 2022/2023?", "winter of 2022/2023", "2022-12-01/2023-03-01"),
    ("Where did Tom live in 2019?", "2019", "2019-01-01/2020-01-01"),
    ("the best concerts of 2021", "2021", "2021-01-01/2022-01-01"),
    ("music from the 1990s", "1990s", "1990-01-01/2000-01-01"),
    # Parts and ranges
    ("Who called at the end of May 2023?", "end of May 2023", "2023-05-16/2023-06-01"),
    ("Who called in early April 2023?", "early April 2023", "2023-04-01/2023-04-16"),
    ("Who called in mid-March 2023?", "mid-March 2023", "2023-03-08/2023-03-24"),
    ("Who called in the last week of May 2023?", "last week of May 2023", "2023-05-25/2023-06-01"),
    ("Who called in the first days of May 2023?", "first days of May 2023", "2023-05-01/2023-05-06"),
    ("Who called in the last weeks of May 2023?", "last weeks of May 2023", "2023-05-01/2023-06-01"),
    ("Who called the last Sunday in May 2022?", "May 2022", "2022-05-01/2022-06-01"),
    ("Who called the last Sunday in May 2023, did he say?", "May 2023", "2023-05-01/2023-06-01"),
    ("Who called in the first two months of 2023?", "first two months of 2023", "2023-01-01/2023-03-01"),
    ("How did I sleep in the second half of last year?", "second half of last year", "2022-07-02/2023-01-01"),
    ("progress between April and May 2022", "between April and May 2022", "2022-04-01/2022-06-01"),
    ("runs from 3 March to 9 April 2023", "from 3 March to 9 April 2023", "2023-03-03/2023-04-10"),
    ("runs from November to February", "from November to February", "2022-11-01/2023-03-01"),
    ("runs from May 2022 to January", "from May 2022 to January", "2022-05-01/2023-02-01"),
    ("essays written between 1973–1977", "between 1973–1977", "1973-01-01/1978-01-01"),
    ("runs of May 30 \u2013 June 2, 2022", "May 30 \u2013 June 2, 2022", "2022-05-30/2022-06-03"),
    ("runs of 30 May until 2 June 2022", "30 May until 2 June 2022", "2022-05-30/2022-06-03"),
    ("runs of May until June 2022", "May until June 2022", "2022-05-01/2022-07-01"),
    ("runs of 2022-05-01 to 2022-05-10", "2022-05-01 to 2022-05-10", "2022-05-01/2022-05-11"),
    ("runs from June 20 to July 4", "from June 20 to July 4", "2023-06-20/2023-07-05"),
    ("runs from December 20 to January 4", "from December 20 to January 4", "2022-12-20/2023-01-05"),
    ("runs in 2020-2022", "2020-2022", "2020-01-01/2023-01-01"),
    ("steps of Jan-Mar 2022", "Jan-Mar 2022", "2022-01-01/2022-04-01"),
    ("steps, December to January 2022", "December to January 2022", "2021-12-01/2022-02-01"),
    ("runs from 2021 to now", "from 2021 to now", "2021-01-01/2023-06-16"),
    ("runs from three months ago until yesterday", "from three months ago until yesterday", "2023-02-28/2023-06-15"),
    ("runs from early 2022 to the end of May", "from early 2022 to the end of May", "2022-01-01/2022-06-01"),
    ("runs from early May until yesterday", "from early May until yesterday", "2023-05-01/2023-06-15"),
    ("runs from mid-December to early January", "from mid-December to early January", "2022-12-08/2023-01-16"),
    ("runs between late March and mid-May 2022", "between late March and mid-May 2022", "2022-03-16/2022-05-24"),
    ("runs from Friday, June 2, to Sunday, June 4", "from Friday, June 2, to Sunday, June 4", "2023-06-02/2023-06-05"),
    ("runs from Friday 2 June to Sunday 4 June", "from Friday 2 June to Sunday 4 June", "2023-06-02/2023-06-05"),
    (
        "runs from the week before last until yesterday",
        "from the week before last until yesterday",
        "2023-05-29/2023-06-15",
    ),
    ("What did we eat Monday to Wednesday last week?", "Monday to Wednesday last week", "2023-06-05/2023-06-08"),
    ("Who came on Tuesday until yesterday?", "Tuesday until yesterday", "2023-06-13/2023-06-15"),
    ("What did we eat Friday through Sunday?", "Friday through Sunday", "2023-06-09/2023-06-12"),
    (
        "Who came on Friday the 2nd until Sunday the 4th?",
        "Friday the 2nd until Sunday the 4th",
        "2023-06-02/2023-06-05",
    ),
    ("What did we eat from Monday to Friday?", "from Monday to Friday", "2023-06-05/2023-06-10"),
    ("What did we eat between Tuesday and Thursday?", "between Tuesday and Thursday", "2023-06-06/2023-06-09"),
    # Relative to now
    ("What did I eat today?", "today", "2023-06-15/2023-06-16"),
    ("What did I eat yesterday?", "yesterday", "2023-06-14/2023-06-15"),
    ("Yesterday's meeting: who took notes?", "Yesterday", "2023-06-14/2023-06-15"),
    ("Whom do I meet tomorrow?", "tomorrow", "2023-06-16/2023-06-17"),
    ("What do we watch tonight?", "tonight", "2023-06-15/2023-06-16"),
    ("Who rang the day before yesterday?", "the day before yesterday", "2023-06-13/2023-06-14"),
    ("Who rang this morning?", "this morning", "2023-06-15/2023-06-15T12:00"),
    ("Who rang yesterday morning?", "yesterday morning", "2023-06-14/2023-06-14T12:00"),
    ("Who rang last Tuesday night?", "last Tuesday night", "2023-06-13T18:00/2023-06-14T06:00"),
    ("Who rang on Tuesday evening?", "Tuesday evening", "2023-06-13T17:00/2023-06-14"),
    ("Who rang on the morning of May 3?", "morning of May 3", "2023-05-03/2023-05-03T12:00"),
    ("Who watched Friday Night Dinner on Sunday?", "Sunday", "2023-06-11/2023-06-12"),
    ("What did I dream last night?", "last night", "2023-06-14T18:00/2023-06-15T06:00"),
    ("What did I eat last evening?", "last evening", "2023-06-14T17:00/2023-06-15"),
    ("Who rang in the last hour?", "last hour", "2023-06-15T17:30/2023-06-16"),
    ("Who rang earlier in the week?", "earlier in the week", "2023-06-12/2023-06-19"),
    ("What did I resolve at the beginning of the year?", "beginning of the year", "2023-01-01/2023-07-02"),
    ("Who wrote 3 days ago?", "3 days ago", "2023-06-12/2023-06-13"),
    ("Who wrote twenty-one days ago?", "twenty-one days ago", "2023-05-25/2023-05-26"),
    ("Who wrote forty five days ago?", "forty five days ago", "2023-05-01/2023-05-02"),
    ("Who wrote a week ago?", "a week ago", "2023-06-05/2023-06-12"),
    ("Who wrote a couple of weeks ago?", "a couple of weeks ago", "2023-05-29/2023-06-05"),
    ("Who wrote a few days ago?", "a few days ago", "2023-06-10/2023-06-14"),
    ("Who wrote a few days back?", "a few days back", "2023-06-10/2023-06-14"),
    ("Who wrote two months ago?", "two months ago", "2023-03-31/2023-05-01"),
    ("Who wrote three years ago?", "three years ago", "2019-12-15/2020-12-16"),
    ("Who wrote half a year ago?", "a year ago", "2022-11-30/2022-12-31"),
    ("Who wrote half an hour ago?", "an hour ago", "2023-06-15T17:55/2023-06-15T18:05"),
    ("Who wrote a year ago today?", "a year ago today", "2022-06-15/2022-06-16"),
    ("Who wrote a year and two months ago?", "a year and two months ago", "2022-03-31/2022-05-01"),
    ("Who wrote two hours ago?", "two hours ago", "2023-06-15T16:00/2023-06-15T17:00"),
    ("Who wrote 2 hrs ago?", "2 hrs ago", "2023-06-15T16:00/2023-06-15T17:00"),
    ("Who wrote 10 min ago?", "10 min ago", "2023-06-15T18:15/2023-06-15T18:25"),
    ("Who wrote two nights ago?", "two nights ago", "2023-06-13/2023-06-14"),
    ("Who wrote two weekends ago?", "two weekends ago", "2023-06-03/2023-06-05"),
    ("Who wrote a fortnight ago?", "a fortnight ago", "2023-05-25/2023-06-09"),
    ("Who wrote in the last fortnight?", "last fortnight", "2023-06-01/2023-06-16"),
    ("Which films did we see last week?", "last week", "2023-06-05/2023-06-12"),
    ("Which films did we see this week?", "this week", "2023-06-12/2023-06-19"),
    ("Which films did we see this past week?", "past week", "2023-06-08/2023-06-16"),
    ("Which films did we see last weekend?", "last weekend", "2023-06-10/2023-06-12"),
    ("Which films did we see over the weekend?", "weekend", "2023-06-10/2023-06-12"),
    ("Which films did we see last month?", "last month", "2023-05-01/2023-06-01"),
    ("Which films did we see the previous month?", "previous month", "2023-05-01/2023-06-01"),
    ("Which films did we see the other day?", "other day", "2023-06-01/2023-06-16"),
    ("Which films did we see the other day in May 2022?", "May 2022", "2022-05-01/2022-06-01"),
    ("Which films did we see last year?", "last year", "2022-01-01/2023-01-01"),
    ("Who got her last year?", "last year", "2022-01-01/2023-01-01"),
    ("Which films did we see last quarter?", "last quarter", "2023-01-01/2023-04-01"),
    ("Which films did we see in the last year?", "last year", "2022-06-15/2023-06-16"),
    ("Which films did we see in the past 10 days?", "past 10 days", "2023-06-05/2023-06-16"),
    ("Which films did we see over the last few weeks?", "last few weeks", "2023-05-11/2023-06-16"),
    ("Which films do we see next week?", "next week", "2023-06-19/2023-06-26"),
    ("the week before last", "the week before last", "2023-05-29/2023-06-05"),
    ("What did I tell Eve on Tuesday?", "Tuesday", "2023-06-13/2023-06-14"),
    ("What did I tell Eve on thursday?", "thursday", "2023-06-08/2023-06-09"),
    ("What did I tell Eve on Wednesday of last week?", "Wednesday of last week", "2023-06-07/2023-06-08"),
    ("What did I bake Monday?", "Monday", "2023-06-12/2023-06-13"),
    ("what did we say monday about the cake", "monday", "2023-06-12/2023-06-13"),
    ("What did I tell Eve on the 15th?", "15th", "2023-06-15/2023-06-16"),
    ("What did I tell Eve since the 3rd?", "since the 3rd", "2023-06-03/2023-06-16"),
    ("What did I tell Eve on the 16th about us?", "16th", "2023-05-16/2023-05-17"),
    ("What did I tell Eve on the 31st?", "31st", "2023-05-31/2023-06-01"),
    ("What did I tell Eve on Tuesday the 4th?", "Tuesday the 4th", "2023-04-04/2023-04-05"),
    ("What did I tell Eve on Monday last week?", "Monday last week", "2023-06-05/2023-06-06"),
    ("What did I tell Eve last week on Monday?", "last week on Monday", "2023-06-05/2023-06-06"),
    ("What do I tell Eve on Friday next week?", "Friday next week", "2023-06-23/2023-06-24"),
    ("What did I tell Eve last week Monday?", "last week Monday", "2023-06-05/2023-06-06"),
    ("What did I tell Eve on Monday morning last week?", "Monday morning last week", "2023-06-05/2023-06-05T12:00"),
    (
        "What did I tell Eve between Monday and Wednesday last week?",
        "between Monday and Wednesday last week",
        "2023-06-05/2023-06-08",
    ),
    ("What did I tell Eve last month on the 5th?", "last month on the 5th", "2023-05-05/2023-05-06"),
    ("What did I tell Eve last month on the whole?", "last month", "2023-05-01/2023-06-01"),
    ("What do we know of what happened on Friday?", "Friday", "2023-06-09/2023-06-10"),
    ("Do you know what I told Eve on Friday?", "Friday", "2023-06-09/2023-06-10"),
    ("What did I tell Eve last Friday?", "last Friday", "2023-06-09/2023-06-10"),
    ("What do I tell Eve this Friday?", "this Friday", "2023-06-16/2023-06-17"),
    ("What do I tell Eve next Thursday?", "next Thursday", "2023-06-22/2023-06-23"),
    ("Where did we swim last summer?", "last summer", "2022-06-01/2022-09-01"),
    ("Where do we swim this summer?", "this summer", "2023-06-01/2023-09-01"),
    ("Where did we swim over the summer?", "summer", "2022-06-01/2022-09-01"),
    ("Where did we swim in the spring?", "spring", "2023-03-01/2023-06-01"),
    ("Where did we ski last Christmas?", "last Christmas", "2022-12-01/2023-01-01"),
    ("Where did we ski at Christmas 2021?", "2021", "2021-01-01/2022-01-01"),
    ("Where did we ski last winter?", "last winter", "2022-12-01/2023-03-01"),
    ("Where do we ski next winter?", "next winter", "2023-12-01/2024-03-01"),
    ("Where did we swim last June?", "last June", "2022-06-01/2022-07-01"),
    ("Where did we swim last June 3?", "last June 3", "2023-06-03/2023-06-04"),
    ("Where did we swim last June 15th?", "last June 15th", "2022-06-15/2022-06-16"),
    ("Where did we swim this June 20?", "this June 20", "2023-06-20/2023-06-21"),
    ("Where do we swim next June 3rd?", "next June 3rd", "2024-06-03/2024-06-04"),
    ("Where did we swim last May 2022?", "last May 2022", "2022-05-01/2022-06-01"),
    ("Where did we swim last summer 2021?", "last summer 2021", "2021-06-01/2021-09-01"),
    ("Where did we swim last Friday, May 26?", "last Friday, May 26", "2023-05-26/2023-05-27"),
    ("Where do we swim next Friday, July 28?", "next Friday, July 28", "2023-07-28/2023-07-29"),
    ("Where did we swim this May?", "this May", "2023-05-01/2023-06-01"),
    ("Where did we swim last year in August?", "last year in August", "2022-08-01/2022-09-01"),
    ("What has Kim cooked lately?", "lately", "2023-05-16/2023-06-16"),
    ("What has Kim recently cooked?", "recently", "2023-05-16/2023-06-16"),
    ("What had Kim recently cooked in May 2022?", "May 2022", "2022-05-01/2022-06-01"),
    # Relative to a date
    ("the week before August 3, 2022", "the week before August 3, 2022", "2022-07-27/2022-08-03"),
    ("the weekend before August 3, 2022", "the weekend before August 3, 2022", "2022-07-30/2022-08-01"),
    ("the weekend after August 3, 2022", "the weekend after August 3, 2022", "2022-08-06/2022-08-08"),
    ("the day after August 3, 2022", "the day after August 3, 2022", "2022-08-04/2022-08-05"),
    ("two weeks before August 11, 2022", "two weeks before August 11, 2022", "2022-07-25/2022-08-01"),
    ("three days after August 11, 2022", "three days after August 11, 2022", "2022-08-14/2022-08-15"),
    ("the weeks before August 11, 2022", "the weeks before August 11, 2022", "2022-07-07/2022-08-11"),
    ("in the days after August 11, 2022", "the days after August 11, 2022", "2022-08-12/2022-08-17"),
    ("the weekend of July 4, 2022", "the weekend of July 4, 2022", "2022-07-02/2022-07-04"),
    ("the weekend of May 6-7, 2023", "the weekend of May 6-7, 2023", "2023-05-06/2023-05-08"),
    ("the weekend of last week", "the weekend of last week", "2023-06-10/2023-06-12"),
    ("the evening before August 11, 2022", "the evening before August 11, 2022", "2022-08-10T17:00/2022-08-11"),
    ("the morning after last Friday", "the morning after last Friday", "2023-06-10/2023-06-10T12:00"),
    ("the day before the 3rd of May", "the day before the 3rd of May", "2023-05-02/2023-05-03"),
    ("two days after Friday, June 2", "two days after Friday, June 2", "2023-06-04/2023-06-05"),
    ("on the morning of Friday, June 2", "morning of Friday, June 2", "2023-06-02/2023-06-02T12:00"),
    ("the month before March 31, 2022", "the month before March 31, 2022", "2022-02-28/2022-03-31"),
    ("the week of August 11, 2022", "the week of August 11, 2022", "2022-08-08/2022-08-15"),
    ("on the Sunday before October 25, 2022", "Sunday before October 25, 2022", "2022-10-23/2022-10-24"),
    ("on the Monday before last Friday", "Monday before last Friday", "2023-06-05/2023-06-06"),
    ("on the Sunday after October 25, 2022", "Sunday after October 25, 2022", "2022-10-30/2022-10-31"),
    ("last weekend before April 10, 2022", "last weekend before April 10, 2022", "2022-04-02/2022-04-04"),
    ("last Friday on 5 May, 2022", "last Friday on 5 May, 2022", "2022-04-29/2022-04-30"),
    ("10 days prior to August 11, 2022", "10 days prior to August 11, 2022", "2022-08-01/2022-08-02"),
    ("two days before yesterday", "two days before yesterday", "2023-06-12/2023-06-13"),
    ("the day before last Tuesday", "the day before last Tuesday", "2023-06-12/2023-06-13"),
    ("the week before this week", "the week before this week", "2023-06-05/2023-06-12"),
    ("the month before last summer", "the month before last summer", "2022-05-01/2022-06-01"),
    ("the week before last Christmas", "before last Christmas", "../2022-12-01"),
    # Open on one side
    ("What changed since May?", "since May", "2023-05-01/2023-06-16"),
    ("What changed since the end of May?", "since the end of May", "2023-05-16/2023-06-16"),
    ("What changed after early May?", "after early May", "2023-05-16/2023-06-16"),
    ("What changed before mid-May?", "before mid-May", "../2023-05-08"),
    ("What changed since June 20?", "since June 20", "2022-06-20/2023-06-16"),
    ("What changed since Friday, June 2?", "since Friday, June 2", "2023-06-02/2023-06-16"),
    ("What changed before Friday, the 2nd of June?", "before Friday, the 2nd of June", "../2023-06-02"),
    ("What changed before the day before yesterday?", "before the day before yesterday", "../2023-06-13"),
    ("What changed since last Tuesday?", "since last Tuesday", "2023-06-13/2023-06-16"),
    ("What changed since Tuesday?", "since Tuesday", "2023-06-13/2023-06-16"),
    ("What changed since 2021?", "since 2021", "2021-01-01/2023-06-16"),
    ("What changed after June 3, 2023?", "after June 3, 2023", "2023-06-04/2023-06-16"),
    ("What changed after the end of 2021?", "after the end of 2021", "2022-01-01/2023-06-16"),
    ("What changed after November?", "after November", "2022-12-01/2023-06-16"),
    ("What will change after June 30, 2023?", "after June 30, 2023", "2023-07-01/.."),
    ("What was done before June 3, 2023?", "before June 3, 2023", "../2023-06-03"),
    ("What was done prior to 2022?", "to 2022", "../2022-01-01"),
    ("What was done before the end of May 2023?", "before the end of May 2023", "../2023-06-01"),
    ("What was done by May 31, 2023?", "by May 31, 2023", "../2023-06-01"),
    ("What was done until last week?", "until last week", "../2023-06-12"),
    ("What is to be done by the end of June?", "by the end of June", "2023-06-15/2023-07-01"),
    ("What is to be done by next week?", "by next week", "2023-06-15/2023-06-26"),
    # In other languages
    ("Was habe ich gestern gekocht?", "gestern", "2023-06-14/2023-06-15"),
    ("Gestern war Eve wo?", "Gestern", "2023-06-14/2023-06-15"),
    ("Was haben wir letzte Woche besprochen?", "letzte Woche", "2023-06-05/2023-06-12"),
    ("Was fehlte dem Bus im März 2022?", "März 2022", "2022-03-01/2022-04-01"),
    ("Wo waren wir letztes Wochenende?", "letztes Wochenende", "2023-06-10/2023-06-12"),
    ("¿Qué dijo Ana esta semana?", "esta semana", "2023-06-12/2023-06-19"),
    ("今年谁来了", "今年", "2023-01-01/2024-01-01"),
    ("Was fehlte dem Bus am 3. Mai 2022?", "3. Mai 2022", "2022-05-03/2022-05-04"),
    ("Was fehlte dem Bus vom 3. bis 5. Mai 2022?", "3. bis 5. Mai 2022", "2022-05-03/2022-05-06"),
    ("Was fehlte dem Bus am 3. und 5. Mai 2022?", "Mai 2022", "2022-05-01/2022-06-01"),
    ("Read the parts 1. intro, 2. May 2022", "May 2022", "2022-05-01/2022-06-01"),
    ("¿Qué pasó el 3 de noviembre de 2022?", "3 de noviembre de 2022", "2022-11-03/2022-11-04"),
    ("Qu'avons-nous fait du 3 au 5 mai 2022 ?", "3 au 5 mai 2022", "2022-05-03/2022-05-06"),
    ("Qu'avons-nous fait l'année dernière ?", "année dernière", "2022-01-01/2023-01-01"),
    ("¿Qué pasó en noviembre de 2022?", "noviembre de 2022", "2022-11-01/2022-12-01"),
    ("Qu'avons-nous décidé hier soir ?", "hier soir", "2023-06-14/2023-06-15"),
    ("Che cosa ho fatto l'altro ieri?", "l'altro ieri", "2023-06-13/2023-06-14"),
    ("O que fizemos no mês passado?", "mês passado", "2023-05-01/2023-06-01"),
    ("Wat deed ze vorige week?", "vorige week", "2023-06-05/2023-06-12"),
    ("что нашёл Толик 13 апреля 2022", "13 апреля 2022", "2022-04-13/2022-04-14"),
    ("حمادة قال ايه امبارح؟", "امبارح", "2023-06-14/2023-06-15"),
    ("पिछले हफ्ते क्या हुआ", "पिछले हफ्ते", "2023-06-05/2023-06-12"),
    ("上上个星期谁来了", "上上个星期", "2023-05-29/2023-06-05"),
    ("2022年6月16号出了什么事", "2022年6月16号", "2022-06-16/2022-06-17"),
    ("老爸昨天量出来高压多少", "昨天", "2023-06-14/2023-06-15"),
    ("先月どこへ行った", "先月", "2023-05-01/2023-06-01"),
    ("Was habe ich vor drei Tagen gesagt?", "vor drei Tagen", "2023-06-12/2023-06-13"),
    ("Où étions-nous il y a 3 jours ?", "il y a 3 jours", "2023-06-12/2023-06-13"),
    ("¿Qué me recetaron hace dos semanas?", "hace dos semanas", "2023-05-29/2023-06-05"),
    ("Cosa ho mangiato due giorni fa?", "due giorni fa", "2023-06-13/2023-06-14"),
    ("Wat aten we twee weken geleden?", "twee weken geleden", "2023-05-29/2023-06-05"),
    ("что мы ели два дня назад?", "два дня назад", "2023-06-13/2023-06-14"),
    ("तीन दिन पहले क्या खाया", "तीन दिन पहले", "2023-06-12/2023-06-13"),
    ("我们两个月前吃了什么", "两个月前", "2023-03-31/2023-05-01"),
    ("3日前に何を食べた", "3日前", "2023-06-12/2023-06-13"),
    ("지난주에 뭐 했어?", "지난주", "2023-06-05/2023-06-12"),
    # A month of every year
    ("Where do they usually go in June?", "June", "--06"),
    ("where do they usually go in may", "may", "--05"),
    ("Who was born in the month of April?", "April", "--04"),
    ("who was born in apr", "apr", "--04"),
    ("Who came on the last weekend in May?", "last weekend in May", "--05"),
    ("Who came in the last week in May?", "last week in May", "--05"),
    ("What blooms in early March?", "early March", "--03"),
    ("Which market opens during Dec.?", "Dec.", "--12"),
]

NO_PERIOD = [
    "When did Ann move to Rome?",
    "Was hat Ann hier gekauft?",
    "What date is the wedding?",
    "In which year did they meet?",
    "Since when has Bo been ill?",
    "How many years did the repair take?",
    "How long has it been since Ann called?",
    "What do we ship in Q3?",
    "What was the answer to Q3?",
    "What was wrong in Q3 papers and in Q4 of the exam?",
    "How many cups of tea does she drink per week?",
    "Does he run every week?",
    "Which club meets once a month?",
    "What does she do on Mondays?",
    "Who swims on Tuesday and Thursday mornings?",
    "Who hosts the show on Sunday Night Live?",
    "When did Vera eat ravioli the last time?",
    "What is Vera's last name?",
    "Who was the last of the Romans?",
    "What happens on the last day?",
    "What did he study in his last year?",
    "Who lives on the 4th floor?",
    "What am I doing on Friday?",
    "I'm flying to Porto on Friday. Who feeds the cat?",
    "What should I bring on Friday?",
    "What should I bring on Friday the 16th?",
    "Who directed Friday the 13th?",
    "Which game can I join on Saturday afternoon?",
    "What could we give Eve this Christmas?",
    "What am I doing Friday?",
    "Who hosts us Friday?",
    "Did we agree to meet Monday?",
    "What was the plan for Monday?",
    "What was decided in the Monday meeting?",
    "What was decided in Monday's meeting?",
    "Did Tom say Monday or Tuesday?",
    "What did Joe Friday say?",
    "What did we do the second Tuesday?",
    "What did we do every other Friday?",
    "What happened the next Friday?",
    "what did we buy on black friday",
    "Who sang on the last night of the tour?",
    "What should I wear in the summer?",
    "Where did he work during the summer job?",
    "What did we plan at the start of the project?",
    "Who came after the 3rd floor was built?",
    "convert from oct to hex",
    "What did the last hour of the match bring?",
    "What do I have on the 15th?",
    "What does Eve do on the weekend?",
    "Who left 1.5 years ago?",
    "Who left a hundred and five days ago?",
    "Who wrote on the 15th-century church?",
    "What do they do on weekends?",
    "What is planned for the weekend?",
    "Which shop opens from Monday to Friday?",
    "Where is the other daypack?",
    "Who cooked for the Fourth of July?",
    "Who found the two days back at work hard?",
    "Where was the previous owner from?",
    "Who took the last photo of the two?",
    "Which of the last 5 items is blue?",
    "What did they do in the last minute of the match?",
    "the last week of the project",
    "Who stayed for two weeks?",
    "Who worked there for 3 years?",
    "a holiday of two weeks",
    "May I use your phone?",
    "Who came in at 3. May I ask?",
    "What may 3 people carry?",
    "you may be right about this",
    "What may she like this time?",
    "this may be the answer",
    "the pot that I put it in may be broken",
    "Did they march 5 miles?",
    "How did the march end?",
    "What did they chant at the march past the house?",
    "Did April call June?",
    "What did June tell me about April?",
    "Did I hear from April?",
    "Where does August Wilson's play take place?",
    "the letter from May",
    "How do we store 2022 items?",
    "a list of 2022 items",
    "What did we store in 1850?",
    "sales rose by 2000",
    "a town with a population of 2000",
    "images of 1920x1080",
    "in 2022.5 seconds",
    "from 2000 to 3000 calories",
    "a hall for between 1900 and 2000 people",
    "version 1.2.23",
    "in 2020:30 and in 2019,5",
    "call 555-2023-05",
    "convert dec 10 to hex",
    "Who sat on sun loungers, and who wed?",
    "Who lives on Sun Street?",
    "2022,500 people came in 2022.5",
    "the 2/3 majority of 5/4",
    "read room 1984",
    "a one-year-old child",
    "a spring in the mattress",
    "Who had a fall?",
    "What does the Tonight Show pay?",
    "Who wrote I Know What You Did Last Summer?",
    "Who reads USA Today?",
    "datetime.today() in python",
    "how to print today's date",
    "Which pet came more recently?",
    "Which cake did I bake most recently?",
    "What did she do until recently?",
    "before long, after all, since then",
    "a long time ago",
    "on 30 February",
    "13/13/2023",
    "5000 years ago",
    "",
    "東京はどこですか",
    "Was ist hier passiert?",
    "What did the philosopher Ayer write?",
    "Who wrote about mars and mayo to Julio?",
    "julıo 2022",
    "Wer saß vor dem Haus?",
    "晚上周老师说了什么",
    "目前天气怎么样",
    "6月3日前に何を食べた",
    "2020年前の話",
]


def interval(period: Period) -> str:
    return str(period).replace("T00:00", "").replace("+00:00", "")


@pytest.mark.parametrize(("query", "expression", "expected"), ONE_PERIOD)
def test_a_time_is_found_where_it_stands(query: str, expression: str, expected: str) -> None:
    periods = find_periods(query, asked_at=ASKED_AT)
    assert [(query[slice(*p.span)], interval(p)) for p in periods] == [(expression, expected)]


@pytest.mark.parametrize("query", NO_PERIOD)
def test_other_words_are_no_time(query: str) -> None:
    assert find_periods(query, asked_at=ASKED_AT) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "What did I do in 2019, 2020 and 2021?",
            ["2019-01-01/2020-01-01", "2020-01-01/2021-01-01", "2021-01-01/2022-01-01"],
        ),
        (
            "Who came in 2019, 2020, or 2021?",
            ["2019-01-01/2020-01-01", "2020-01-01/2021-01-01", "2021-01-01/2022-01-01"],
        ),
        ("Who came on Fri, Sat and Sun?", ["2023-06-09/2023-06-10", "2023-06-10/2023-06-11", "2023-06-11/2023-06-12"]),
        ("What did we ship in Q1 and Q2 2022?", ["2022-01-01/2022-04-01", "2022-04-01/2022-07-01"]),
        (
            "What did I say on Monday, Tuesday and Friday last week?",
            ["2023-06-05/2023-06-06", "2023-06-06/2023-06-07", "2023-06-09/2023-06-10"],
        ),
        (
            "Who came on the 5th, 7th and 9th of March?",
            ["2023-03-05/2023-03-06", "2023-03-07/2023-03-08", "2023-03-09/2023-03-10"],
        ),
        ("Who came on the 5th or 9th of March 2022?", ["2022-03-05/2022-03-06", "2022-03-09/2022-03-10"]),
        ("Who came on May 3 and 5 June 2021?", ["2021-05-03/2021-05-04", "2021-06-05/2021-06-06"]),
        (
            "Who came on 30 December, on Dec. 31, or the 1st of January 2022?",
            ["2021-12-30/2021-12-31", "2021-12-31/2022-01-01", "2022-01-01/2022-01-02"],
        ),
        ("In 2019, 2000 people came.", ["2019-01-01/2020-01-01"]),
        ("On May 3, 2000 people came.", ["2023-05-03/2023-05-04"]),
        ("Who came in May, June, or July?", ["--05", "--06", "--07"]),
        ("Who came in May/June?", ["--05", "--06"]),
        ("Who came in May, June & July?", ["--05", "--06", "--07"]),
        ("Who came in May/2023?", ["2023-05-01/2023-06-01"]),
        ("Who came on Fri & Sat?", ["2023-06-09/2023-06-10", "2023-06-10/2023-06-11"]),
        ("In May, June and Tom came where?", ["--05"]),
        ("On Monday, May called about what?", ["2023-06-12/2023-06-13"]),
        ("In 2020, August Smith played what?", ["2020-01-01/2021-01-01"]),
        ("since thurs, last Tues", ["2023-06-08/2023-06-16", "2023-06-13/2023-06-14"]),
    ],
)
def test_all_times_of_a_list_are_found(query: str, expected: list[str]) -> None:
    """Weekdays by their short forms, too."""
    assert [interval(period) for period in find_periods(query, asked_at=ASKED_AT)] == expected


def test_each_of_several_times_is_found_in_order() -> None:
    periods = find_periods("Compare April 6-7, 2023, last week and 2021: since 2021?", asked_at=ASKED_AT)
    assert [interval(p) for p in periods] == [
        "2023-04-06/2023-04-08",
        "2023-06-05/2023-06-12",
        "2021-01-01/2023-06-16",
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Compare May 2022 to May 2023", ["2022-05-01/2022-06-01", "2023-05-01/2023-06-01"]),
        ("moved it on 5 May 2022 to 8 July 2022", ["2022-05-05/2022-05-06", "2022-07-08/2022-07-09"]),
        ("I prefer last summer to this summer", ["2022-06-01/2022-09-01", "2023-06-01/2023-09-01"]),
        ("yesterday - 5 May", ["2023-06-14/2023-06-15", "2023-05-05/2023-05-06"]),
        ("Where were we in 2021 and 2022?", ["2021-01-01/2022-01-01", "2022-01-01/2023-01-01"]),
        ("Who called on Monday or Tuesday?", ["2023-06-12/2023-06-13", "2023-06-13/2023-06-14"]),
    ],
)
def test_times_that_are_compared_or_moved_are_no_range(query: str, expected: list[str]) -> None:
    assert [interval(p) for p in find_periods(query, asked_at=ASKED_AT)] == expected


def test_months_share_the_year_of_the_last_one() -> None:
    periods = find_periods("the rent of December and January 2022, not of a march or May 2021", asked_at=ASKED_AT)
    assert [interval(p) for p in periods] == [
        "2021-12-01/2022-01-01", "2022-01-01/2022-02-01", "2021-05-01/2021-06-01",
    ]  # fmt: skip


def test_all_months_of_a_list_have_its_year() -> None:
    periods = find_periods("What did we do in December, January, and February 2022?", asked_at=ASKED_AT)
    assert [interval(p) for p in periods] == [
        "2021-12-01/2022-01-01", "2022-01-01/2022-02-01", "2022-02-01/2022-03-01",
    ]  # fmt: skip


def test_the_first_periods_count() -> None:
    query = " and ".join(f"on May {day}, 2023" for day in range(1, 31))
    assert [period.start.day for period in find_periods(query, asked_at=ASKED_AT) if period.start] == [
        *range(1, MOST_PERIODS + 1)
    ]


def test_a_day_is_that_of_the_asker() -> None:
    asked_at = datetime(2023, 6, 15, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    [period] = find_periods("What did I eat today?", asked_at=asked_at)
    assert str(period) == "2023-06-15T00:00+09:00/2023-06-16T00:00+09:00"


def test_a_day_of_summer_time_begins_at_its_midnight() -> None:
    asked_at = datetime(2023, 3, 26, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    [period] = find_periods("What did I eat today?", asked_at=asked_at)
    assert str(period) == "2023-03-26T00:00+01:00/2023-03-27T00:00+02:00"


def test_a_time_of_asking_without_a_zone_is_utc() -> None:
    naive = ASKED_AT.replace(tzinfo=None)
    assert find_periods("last week", asked_at=naive) == find_periods("last week", asked_at=ASKED_AT)


@pytest.mark.parametrize(
    ("asked_on", "query", "expected"),
    [
        ("2023-06-18", "last weekend", "2023-06-10/2023-06-12"),  # a Sunday
        ("2023-06-19", "last weekend", "2023-06-17/2023-06-19"),
        ("2023-06-18", "on the weekend", "2023-06-17/2023-06-19"),
        ("2023-06-16", "on the weekend", "2023-06-10/2023-06-12"),
        ("2023-06-19", "last week", "2023-06-12/2023-06-19"),
        ("2023-01-31", "this winter", "2022-12-01/2023-03-01"),
        ("2023-11-30", "this winter", "2023-12-01/2024-03-01"),
        ("2023-05-31", "this winter", "2022-12-01/2023-03-01"),
        ("2023-01-31", "last winter", "2021-12-01/2022-03-01"),
        ("2024-03-31", "a month ago", "2024-02-14/2024-03-16"),
        ("2023-07-15", "after July", "2022-08-01/2023-07-16"),
        ("2023-07-15", "since July", "2023-07-01/2023-07-16"),
    ],
)
def test_times_at_the_turn_of_a_period(asked_on: str, query: str, expected: str) -> None:
    [period] = find_periods(query, asked_at=datetime.fromisoformat(asked_on).replace(tzinfo=UTC))
    assert interval(period) == expected


@pytest.mark.parametrize("asked_at", [datetime.min, datetime.max, datetime(2, 1, 1), datetime(9997, 12, 31)])
@pytest.mark.parametrize("query", [query for query, _, _ in ONE_PERIOD])
def test_the_ends_of_the_calendar_are_no_error(query: str, asked_at: datetime) -> None:
    find_periods(query, asked_at=asked_at.replace(tzinfo=timezone(timedelta(hours=14))))
