"""The format `memory-flow`: the memory of one step over time as a picture (SVG).

A rectangle is a block of memory; its height is the size of the block, so the blocks that are alive
at one time do not overlap. Each allocator has a part with the blocks above each other and, if their
addresses are recorded, one with the blocks at their addresses.
"""

import re
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from ..errors import StoreError
from ..numbers import counted, duration, size
from ..query.explanations import untraced_reason
from ..query.memory_blocks import Block, Memory, memories, peak
from ..store.columns import row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from ..tfviews.encoding import valid_utf8
from ..traces.chosen import chosen_traces
from .request import Request

#: Maximum number of blocks of a device that are drawn, the largest ones.
BLOCKS_MAX: Final = 5_000
#: Maximum number of steps that are read to find one with memory.
STEPS_MAX: Final = 50
#: Colors of the scopes with most bytes, and of all other scopes. Color-blind people can tell them
#: apart.
_COLORS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_OTHER_COLOR: Final = "#999999"
_OTHERS: Final = "other scopes"
_HOLDERS_MAX: Final = 8
#: The picture: width of the plot, its left edge, width of the text beside it, and heights (px).
_PLOT, _LEFT, _SIDE = 800, 90, 330
_HEIGHT, _HEAD, _FOOT = 320, 60, 50
_TICKS: Final = 4
#: Maximum size of a gap between addresses, as a share of the drawn bytes. Larger gaps are shortened
#: to this size. If there are many gaps, they are shortened further, so that all of them together
#: take at most half as much space as the bytes.
_GAP: Final = 0.02
_GAPS: Final = 0.5
_TICK_DISTANCE: Final = 14
_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]|\\s+")
_STYLE: Final = (
    "text{font-family:DejaVu Sans,Liberation Sans,Noto Sans,Arial,sans-serif;font-size:12px;fill:#222}"
    ".h{font-weight:bold}.b{fill:#fff}.a{stroke:#888;stroke-width:1}.g{stroke:#ccc;stroke-width:1}"
    ".p{stroke:#b00020;stroke-width:1.5;stroke-dasharray:5 3}"
)


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; UsageError as in `chosen_traces`, StoreError ``no-data`` without memory.

    The step is the last selected one. If that has no memory, it is one shortly before.
    """
    selection = request.selection
    (chosen,) = chosen_traces(selection)
    if not chosen.traces.num_rows:
        raise StoreError(untraced_reason(chosen.job), slug="no-data")
    steps = (chosen.traces.slice(at, 1) for at in reversed(range(chosen.traces.num_rows)))
    found: list[Memory] = []
    for traces in islice(steps, STEPS_MAX):
        ((kind, key, step, start_ns),) = row_tuples(traces, "kind", "key", "step", "start_ns")
        step_kind = step_kind_of(kind, key)
        found = [memory for memory in memories(chosen.job, traces, (step_kind,), selection.device) if memory.blocks]
        if found:
            break
    else:
        raise StoreError("no op of these steps allocated memory, or TensorFlow did not record it", slug="no-data")
    if not all(memory.is_recorded for memory in found):
        request.notes.append(
            "TensorFlow recorded how much each op allocated, and not when memory was freed: the picture is an estimate"
        )
    title = f"Memory of {_text(chosen.job.info.name or chosen.job.info.hex)}, "
    title += f"{_text(kind_name(step_kind, functions_of(chosen.job.info)))} step {step}"
    yield from (text.encode() for text in _picture(chosen.job, title, found, start_ns))


def _picture(job: JobReader, title: str, found: Sequence[Memory], start_ns: int) -> Iterator[str]:
    width, panel = _LEFT + _PLOT + _SIDE, _HEAD + _HEIGHT + _FOOT
    panels = [*chain.from_iterable(_panels(memory, start_ns) for memory in found)]
    height = 30 + panel * len(panels)
    description = "; ".join(_headline(memory, start_ns) for memory in found)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:tag="https://megengine.org.cn" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{escape(title)}</title>\n'
        f'<desc id="desc">{escape(description)}. Job {job.info.hex}.</desc>\n'
        f'<style>{_STYLE}</style>\n<rect class="b" width="{width}" height="{height}"/>\n'
        f'<text class="h" x="{_LEFT}" y="20">{escape(title)}</text>\n'
    )
    for number, draw in enumerate(panels):
        yield from draw(30 + number * panel)
    yield "</svg>\n"


def _headline(memory: Memory, start_ns: int) -> str:
    top = peak(memory.blocks)
    where = " ".join(filter(None, (memory.device, memory.allocator and f"allocator {_text(memory.allocator)}")))
    how = "recorded" if memory.is_recorded else "estimated: an output lives until the last op that uses it has ended"
    if memory.is_recorded and not any(block.address for block in memory.blocks):
        how += ", without addresses"
    return f"{where}: peak {size(top.bytes)} after {duration(top.time_ns - start_ns)} ({how})"


class _Scale(NamedTuple):
    """Where a moment (ns) and an offset (bytes) are in a panel (px)."""

    first_ns: int
    last_ns: int
    bytes: int
    bottom: float

    def x(self, ns: int) -> float:
        return _LEFT + (ns - self.first_ns) / max(1, self.last_ns - self.first_ns) * _PLOT

    def y(self, offset: int) -> float:
        return self.bottom - offset / max(1, self.bytes) * _HEIGHT


def _panels(memory: Memory, start_ns: int) -> Iterator[Callable[[int], Iterator[str]]]:
    """Yield the functions that draw the parts of an allocator; they get the top edge (px)."""
    colors = _colors(memory.blocks)
    yield partial(_stacked, memory, colors, start_ns)
    if any(block.address for block in memory.blocks):
        yield partial(_at_addresses, memory, colors, start_ns)


def _stacked(memory: Memory, colors: dict[str, str], start_ns: int, top: int) -> Iterator[str]:
    """Yield the part with the blocks above each other."""
    drawn = _drawn(memory.blocks)
    offsets = _offsets(drawn)
    scale = _scale(drawn, max(map(_end, offsets, drawn)), top)
    yield f'<text x="{_LEFT}" y="{top + 22}">{escape(_headline(memory, start_ns))}</text>\n'
    if left_out := len(memory.blocks) - len(drawn):
        text = f"the {len(drawn):,} largest blocks; {left_out:,} more are smaller"
        yield f'<text x="{_LEFT}" y="{top + 38}">{text}</text>\n'
    yield from _axes(scale, start_ns)
    yield from _size_ticks(scale)
    for offset, block in zip(offsets, drawn, strict=True):
        yield _rectangle(
            block, offset, scale, colors.get(_scope(block), _OTHER_COLOR), start_ns, _tags(block, start_ns)
        )
    yield from _peak(memory, scale, start_ns)
    yield from _legend(colors, drawn, scale)


def _at_addresses(memory: Memory, colors: dict[str, str], start_ns: int, top: int) -> Iterator[str]:
    """Yield the part with the blocks at their addresses."""
    known = [block for block in memory.blocks if block.address]
    drawn = _drawn(known)
    regions = _regions(drawn)
    offsets = _region_offsets(drawn, regions)
    scale = _scale(drawn, regions[-1].offset + regions[-1].bytes, top)
    notes = [f"by address, from {regions[0].address:#x} on"]
    if len(regions) > 1:
        notes.append(f"gaps shortened at {counted(len(regions) - 1, 'gray line')}")
    if unknown := len(memory.blocks) - len(known):
        notes.append(f"without {counted(unknown, 'block')} whose address is not recorded")
    if left_out := len(known) - len(drawn):
        notes.append(f"without {counted(left_out, 'smaller block')}")
    yield f'<text x="{_LEFT}" y="{top + 38}">{"; ".join(notes)}</text>\n'
    yield from _axes(scale, start_ns)
    yield from _region_ticks(regions, scale)
    for offset, block in zip(offsets, drawn, strict=True):
        yield _rectangle(block, offset, scale, colors.get(_scope(block), _OTHER_COLOR), start_ns)
    x = scale.x(peak(memory.blocks).time_ns)
    yield f'<line class="p" x1="{x:.1f}" x2="{x:.1f}" y1="{scale.bottom - _HEIGHT - 6}" y2="{scale.bottom}"/>\n'


def _drawn(blocks: Sequence[Block]) -> list[Block]:
    """Return the largest blocks, by start."""
    return sorted(sorted(blocks, key=lambda block: -block.bytes)[:BLOCKS_MAX], key=lambda block: block.start_ns)


def _end(offset: int, block: Block) -> int:
    return offset + block.bytes


def _scale(drawn: Sequence[Block], bytes_: int, top: int) -> _Scale:
    first, last = min(block.start_ns for block in drawn), max(block.end_ns for block in drawn)
    return _Scale(first, last, bytes_, top + _HEAD + _HEIGHT)


class _Region(NamedTuple):
    """Addresses without a gap: the lowest one, their number, and the place of the lowest one."""

    address: int
    bytes: int
    offset: int


def _regions(blocks: Sequence[Block]) -> list[_Region]:
    """Return the regions of the addresses of ``blocks``, in order; larger gaps lie between them."""
    spans: list[list[int]] = []
    for first, end in sorted((block.address, block.address + block.bytes) for block in blocks):
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([first, end])
    used = sum(end - first for first, end in spans)
    gap = max(1, min(int(used * _GAP), int(used * _GAPS / len(spans))))
    regions: list[_Region] = []
    for first, end in spans:
        before = regions[-1] if regions else None
        if before and first - before.address - before.bytes <= gap:
            regions[-1] = before._replace(bytes=end - before.address)
        else:
            regions.append(_Region(first, end - first, before.offset + before.bytes + gap if before else 0))
    return regions


def _region_offsets(blocks: Sequence[Block], regions: Sequence[_Region]) -> list[int]:
    """Return the places of ``blocks``."""
    starts = [region.address for region in regions]
    of_blocks = (regions[bisect_right(starts, block.address) - 1] for block in blocks)
    return [region.offset + block.address - region.address for region, block in zip(of_blocks, blocks, strict=True)]


def _rectangle(block: Block, offset: int, scale: _Scale, color: str, start_ns: int, tags: str = "") -> str:
    left, right, low, high = (
        scale.x(block.start_ns),
        scale.x(block.end_ns),
        scale.y(offset),
        scale.y(offset + block.bytes),
    )
    began, ended = _times(block, start_ns)
    where = f" at {block.address:#x}" if block.address else ""
    return (
        f'<rect x="{left:.2f}" y="{high:.2f}" width="{max(0.3, right - left):.2f}" height="{max(0.3, low - high):.2f}"'
        f' fill="{color}"{tags}><title>{escape(_text(_name(block)))} ({escape(_text(block.op))}):'
        f" {block.bytes:,} bytes{where}, {began:.3f} to {ended:.3f} µs</title></rect>\n"
    )


def _tags(block: Block, start_ns: int) -> str:
    """Return the attributes of a block that MegEngine's memory_flow.svg has."""
    name = escape(_text(_name(block)), {'"': "&quot;"})
    began, ended = _times(block, start_ns)
    address = f' tag:address="{block.address:#x}"' if block.address else ""
    return (
        f' tag:type="tensor" tag:name="{name}"{address} tag:size="{block.bytes}" tag:produced="{began:.3f}us"'
        f' tag:erased="{ended:.3f}us" tag:duration="{ended - began:.3f}us"'
    )


def _times(block: Block, start_ns: int) -> tuple[float, float]:
    """Return the start and the end of a block, in µs after the start of the step."""
    return (block.start_ns - start_ns) / 1000, (block.end_ns - start_ns) / 1000


def _axes(scale: _Scale, start_ns: int) -> Iterator[str]:
    top = scale.bottom - _HEIGHT
    yield f'<path class="a" fill="none" d="M{_LEFT} {top}V{scale.bottom}H{_LEFT + _PLOT}"/>\n'
    for tick in range(_TICKS + 1):
        moment = scale.first_ns + (scale.last_ns - scale.first_ns) * tick // _TICKS
        label = duration(max(0, moment - start_ns))
        yield f'<text x="{scale.x(moment):.1f}" y="{scale.bottom + 18}" text-anchor="middle">{label}</text>\n'
    yield f'<text x="{_LEFT + _PLOT / 2}" y="{scale.bottom + 36}" text-anchor="middle">time in the step</text>\n'


def _size_ticks(scale: _Scale) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        offset = scale.bytes * tick // _TICKS
        yield _tick(scale.y(offset), size(offset))


def _region_ticks(regions: Sequence[_Region], scale: _Scale) -> Iterator[str]:
    """Yield the lines at the gaps, and the distance of each region from the lowest address."""
    gaps = "".join(f"M{_LEFT} {scale.y(region.offset):.1f}h{_PLOT}" for region in regions[1:])
    yield f'<path class="g" fill="none" d="{gaps}"/>\n' if gaps else ""
    last = scale.bottom + _TICK_DISTANCE
    for region in regions:
        y = scale.y(region.offset)
        if last - y >= _TICK_DISTANCE:
            last = y
            yield _tick(y, size(region.address - regions[0].address))


def _tick(y: float, label: str) -> str:
    return f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>\n'


def _peak(memory: Memory, scale: _Scale, start_ns: int) -> Iterator[str]:
    """Yield the line of the peak, and the nodes that hold memory then."""
    top = peak(memory.blocks)
    x, high, side = scale.x(top.time_ns), scale.bottom - _HEIGHT, _LEFT + _PLOT + 16
    yield f'<line class="p" x1="{x:.1f}" x2="{x:.1f}" y1="{high - 6}" y2="{scale.bottom}"/>\n'
    head = f"peak: {size(top.bytes)} in {len(top.holders):,} blocks after {duration(top.time_ns - start_ns)}"
    yield f'<text class="h" x="{side}" y="{high}">{head}</text>\n'
    for row, block in enumerate(top.holders[:_HOLDERS_MAX], 1):
        name = _text(_name(block))
        short = name if len(name) <= 36 else f"…{name[-35:]}"
        yield f'<text x="{side}" y="{high + 16 * row}">{size(block.bytes)} {escape(short)}</text>\n'
    rest = top.holders[_HOLDERS_MAX:]
    if rest:
        text = f"{size(sum(block.bytes for block in rest))} in {len(rest):,} other blocks"
        yield f'<text x="{side}" y="{high + 16 * (_HOLDERS_MAX + 1)}">{text}</text>\n'


def _legend(colors: dict[str, str], drawn: Sequence[Block], scale: _Scale) -> Iterator[str]:
    side, y = _LEFT + _PLOT + 16, scale.bottom - 16 * len(colors)
    entries = list(colors.items())
    if any(_scope(block) not in colors for block in drawn):
        entries.append((_OTHERS, _OTHER_COLOR))
    for row, (scope, color) in enumerate(entries):
        yield f'<rect x="{side}" y="{y + 16 * row - 9}" width="10" height="10" fill="{color}"/>\n'
        yield f'<text x="{side + 16}" y="{y + 16 * row}">{escape(_text(scope)[:40])}</text>\n'


def _offsets(blocks: Sequence[Block]) -> list[int]:
    """Return an offset of each block, so that blocks that are alive at one time do not overlap.

    A block gets the lowest gap that is free when it starts. ``blocks`` are in order of starts.
    """
    alive: list[tuple[int, int, int]] = []  # offset, end of the block (bytes), end (ns)
    offsets = []
    for block in blocks:
        alive = [entry for entry in alive if entry[2] > block.start_ns]
        offset = 0
        for low, high, _ in alive:
            if low - offset >= block.bytes:
                break
            offset = max(offset, high)
        insort(alive, (offset, offset + block.bytes, block.end_ns))
        offsets.append(offset)
    return offsets


def _scope(block: Block) -> str:
    """Return the outermost name scope of the node, or the op type of one without a scope."""
    scope, slash, _ = block.node.partition("/")
    return scope if slash else block.op or _name(block)


def _name(block: Block) -> str:
    return block.node or "(from before the step)"


def _colors(blocks: Sequence[Block]) -> dict[str, str]:
    """Return the colors of the scopes with most bytes, by scope."""
    sums: dict[str, int] = {}
    for block in blocks:
        sums[_scope(block)] = sums.get(_scope(block), 0) + block.bytes
    ranked = sorted(sums, key=lambda scope: (-sums[scope], scope))
    return dict(zip(ranked, _COLORS, strict=False))


def _text(text: str) -> str:
    """Return a text of a job as one line that XML can contain."""
    return _INVALID.sub(" ", valid_utf8(text))[:300]
