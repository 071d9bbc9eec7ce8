"""What every Python that the wheel promises can do, with nothing but the package."""

import asyncio
import sys

from cuda_timelines import Error, HostTimeline, ImportedTimeline, TimelineFile


async def wait(point):
    await point


with TimelineFile(0) as file, HostTimeline(file=file) as timeline:
    later = ImportedTimeline(0, timeline.descriptor, file).point(timeline.completed + 1)
    assert not later.wait(timeout=0.001)

    async def run():
        task = asyncio.ensure_future(wait(later))
        await asyncio.sleep(0)
        timeline.signal()
        await task

    asyncio.run(run())
    assert later.done() and later.wait()
try:
    timeline.signal()
except Error as error:
    print(f"Python {sys.version.split()[0]}: {error}")
