"""The rooms of src/pipeline and src/app include downwards only, as the folders of src do (layers.py).

The first rooms of the pipeline know each other: a request has the limits of its family, a family reads its files. A room
without a place here is a complaint, so that whoever adds one decides what it may see.
"""

ORDERS = {
    "pipeline": [["devices", "graphs", "memory", "request", "sampling", "families", "files"], ["pictures"], ["planner"],
                 ["deployment"], ["loaded"], ["engine", "proofs", "conversion"]],
    "app": [["machine", "words"], ["flags"], ["print"], ["files"], ["commands"]],
}
OF_EQUALS = ("pipeline", 0)  # the level whose rooms may include each other


def level_of(folder, room):
    return next((i for i, rooms in enumerate(ORDERS[folder]) if room in rooms), None)


def may_include(folder, room, other):
    own, its = level_of(folder, room), level_of(folder, other)
    return room == other or its is None or its < own or (its == own and (folder, own) == OF_EQUALS)


def room_of(path):
    """("pipeline", "engine") for "pipeline/engine/engine.h"; (None, None) elsewhere."""
    folders = path.split("/")
    return folders[:2] if folders[0] in ORDERS and len(folders) > 2 else (None, None)


def check(sources, root):
    del root
    for source in sources:
        folder, room = room_of(source.path.removeprefix("src/"))
        if folder is None or not source.path.startswith("src/"):
            continue
        if level_of(folder, room) is None:
            yield source.path, 1, f"src/{folder}/{room} has no place in the order of rooms"
            continue
        for number, file in source.includes:
            where, other = room_of(file)
            if where == folder and not may_include(folder, room, other):
                yield source.path, number, f"{folder}/{room} must not include {folder}/{other}"
