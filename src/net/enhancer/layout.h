// Layouts beside an enhancer's prompt: FLUX.3's enhancer writes a caption around a user's boxes.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace braid::net {

// The user's boxes as rows on a canvas of 1000 x 1000, in the spelling that the enhancer was
// trained to read: [{"id": "cup_1", "bbox": [100, 200, 300, 400], "desc": "a cup"}]. Fractions from
// 0 to 1 are scaled, halves to even. Throws InputError unless `boxes` is a JSON array of rows.
std::string rows_on_canvas(const std::string& boxes);

// The caption, and all rows. `locked` is rows_on_canvas() of the user's boxes: they stay as they
// are, but for the descriptions that the enhancer wrote. A row which plans one of them anew under
// another name (intersection over union of 0.9 or more) takes the user's name, in the caption, too.
// Rows that the enhancer added follow if they are boxes that the caption cites.
struct LaidOutCaption {
  std::string caption, rows;
};
LaidOutCaption with_locked_rows(const std::string& answer, const std::string& locked);

// Whether an enhancer's row is a box: its id, its description, and a `bbox`, or `from`, `src_bbox`
// and `tgt_bbox`, on that canvas.
bool is_planned_row(const Json& row);

}  // namespace braid::net
