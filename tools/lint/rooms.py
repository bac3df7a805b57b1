"""The rooms of src/pipeline include downwards only, as its folders do (layers.py).

The first rooms know each other: a request has the limits of its family, a family reads its files. A room without a
place here is a complaint, so that whoever adds one decides what it may see.
"""

ORDER = [["devices", "graphs", "memory", "request", "sampling", "families", "files"], ["pictures"], ["planner"],
         ["deployment"], ["loaded"], ["engine", "proofs", "conversion"]]


def level_of(room):
    return next((i for i, rooms in enumerate(ORDER) if room in rooms), None)


def may_include(room, other):
    if room == other or level_of(other) is None:
        return True
    same = level_of(room) == level_of(other)
    return level_of(other) < level_of(room) or (same and level_of(room) == 0)


def room_of(path):
    """The room in "pipeline/engine/engine.h"; None elsewhere."""
    folders = path.split("/")
    return folders[1] if folders[0] == "pipeline" and len(folders) > 2 else None


def check(sources, root):
    del root
    for source in sources:
        room = room_of(source.path.removeprefix("src/"))
        if room is None or not source.path.startswith("src/"):
            continue
        if level_of(room) is None:
            yield source.path, 1, f"src/pipeline/{room} has no place in the order of rooms"
            continue
        for number, file in source.includes:
            other = room_of(file)
            if other and not may_include(room, other):
                yield source.path, number, f"pipeline/{room} must not include pipeline/{other}"
