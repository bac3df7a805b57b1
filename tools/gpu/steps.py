"""Runs a phase's steps one after another within its time limit."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

PHASE_SECONDS = 530  # nine minutes, less the time for starting and writing
FEWEST_SECONDS = 5   # with less time left no step is started
SECONDS_TO_END = 5   # of a step that was killed


@dataclass
class Step:
    name: str
    command: list  # words
    limit: float   # seconds
    figures: Callable = lambda output: {}  # {name: number or word}, from its output
    needs: str = ""  # a file without which it is left out
    why_not: Callable = lambda: ""  # why it is left out here, asked when it would start
    settings: dict = field(default_factory=dict)  # environment variables


def ended_in(code):
    return "well" if code == 0 else f"failed ({code})"


def end_all(process):
    """Ends a step with all that it started: what is left would hold the GPU. What it printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=SECONDS_TO_END)[0]
    except subprocess.TimeoutExpired as late:  # what left its session still holds the pipe
        return late.stdout or b""


def ended_within(process, limit):
    """(how it ended, what it printed)"""
    try:
        output = process.communicate(timeout=limit)[0]
        ended = ended_in(process.returncode)
    except subprocess.TimeoutExpired:
        ended, output = f"cut off at {limit:.0f} s", end_all(process)
    except BaseException:  # Ctrl-C reaches only this program
        end_all(process)
        raise
    return ended, output.decode("utf-8", "replace")


def run_one(step, log, limit):
    """(how it ended, what it printed)"""
    with log.open("a") as file:
        file.write(f"== {step.name}\n")
        file.flush()
        try:
            process = subprocess.Popen([str(word) for word in step.command], stdout=subprocess.PIPE,
                                       stderr=file, start_new_session=True,
                                       env={**os.environ, **step.settings})
        except OSError as cause:
            ended, output = f"not started: {cause.strerror}", ""
        else:
            ended, output = ended_within(process, limit)
    with log.open("a") as file:
        file.write(output)
    return ended, output


def figures_of(step, output):
    """Empty if the step was cut off or printed something unexpected."""
    try:
        return step.figures(output)
    except (ValueError, KeyError, IndexError, TypeError):
        return {}


def is_there(path):
    return not path or Path(path).exists()


def run(steps, log, seconds=PHASE_SECONDS):
    """One row per step. A failing step does not stop the others; steps without time are skipped."""
    rows, end = [], time.monotonic() + seconds
    for step in steps:
        row = {"step": step.name, "ended": "left out", "seconds": 0.0}
        rows.append(row)
        why_not = f"there is no {step.needs}" if not is_there(step.needs) else step.why_not()
        begin = time.monotonic()
        left = end - begin
        if why_not:
            row["why"] = why_not
        elif left < FEWEST_SECONDS:
            row.update(ended="no time", why="earlier steps took it")
        else:
            row["ended"], output = run_one(step, log, min(step.limit, left))
            row["seconds"] = round(time.monotonic() - begin, 1)
            row.update(figures_of(step, output))
        print(f"{step.name}: {row['ended']}, {row['seconds']} s", flush=True)
    return rows


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(rows):
    lines = []
    for row in rows:
        rest = {key: value for key, value in row.items() if key not in ("step", "ended", "seconds")}
        words = ", ".join(f"{key} {shown(value)}" for key, value in rest.items())
        lines.append(f"{row['step']:32} {row['ended']:16} {row['seconds']:7.1f} s  {words}".rstrip())
    return "\n".join(lines)


# From program output to figures.

def json_in(output):
    """The object that starts at the first brace of the output."""
    return json.loads(output[output.index("{"):])


def of_tests(output):
    """From Google Test's last lines."""
    counts = {}
    for line in output.splitlines():
        for word, key in (("[  PASSED  ]", "passed"), ("[  SKIPPED ]", "skipped"),
                          ("[  FAILED  ]", "failed")):
            if line.startswith(word) and line.split("]")[1].split()[0].isdigit():
                counts[key] = int(line.split("]")[1].split()[0])
    return counts


def of_bench(output):
    result = json_in(output)
    return {"step_ms": 1e3 * result["step_s"], "load_s": result["load_s"],
            "peak_gb": result["peak_vram_max_single_gpu_gb"],
            "text_stream": result["text_stream"], "replays": result["graph"]["replays"], **{
                key: result["graph"][key] for key in ("why_not", "failure")
                if key in result["graph"]}}


def of_ceilings(output):
    """The best rate per dtype over all shapes, in TFLOP/s, and that of copies."""
    result = json_in(output)
    best = {"memory_gb_per_s": result["memory_gb_per_s"]}
    if "copy_gb_per_s" in result:
        best["copy_gb_per_s"] = result["copy_gb_per_s"]
    for product in result["products"]:
        key = f"{product['dtype']}_tera"
        best[key] = max(best.get(key, 0), product["best_tera_per_s"])
    for attention in result["attention"]:
        rate = max(way["tera_per_s"] for way in attention["ways"].values())
        best["attention_tera"] = max(best.get("attention_tera", 0), rate)
    return best


def of_generate(output):
    result = json_in(output)
    return {"seconds_per_step": result["seconds_per_step"], "replays": result["graph"]["replays"]}


def of_first_picture(output):
    """Seconds by phase, from program start to picture."""
    result = json_in(output)
    seconds = {f"{phase}_s": value for phase, value in result["seconds"].items()}
    return {**seconds, **of_generate(output)}


def of_peers(output):
    """Medians from the rows that peers.py prints: work, contender, "0.123 s  (0.120 to 0.131)"."""
    medians = {}
    for line in output.splitlines():
        found = re.match(r".{18} (.{28}) +([0-9.]+) s  \(", line)
        if found:
            medians[f"{found[1].strip()}_ms"] = round(1e3 * float(found[2]), 3)
    return medians
