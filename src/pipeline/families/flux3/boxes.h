// Layouts: where the elements of a picture lie, as FLUX.3 was trained to read them behind a prompt.
#pragma once

#include <string>

namespace braid {

// The prompt, a space and the boxes as one JSON array, spelled as Python's json.dumps does.
//
// `boxes` is a JSON array of rows. A row has an `id`, a `desc`, and a `bbox` of [y_min, x_min,
// y_max, x_max]; or, in edits, `from`, "target" or "ref_image_0", ..., with a `src_bbox` there and
// a `tgt_bbox` in the picture, either of which may be null. Coordinates are whole numbers from 0 to
// 1000, or all of a box fractions from 0 to 1.
//
// Throws InputError naming the row: for other fields and values, boxes that lie outside or are
// empty, references that there are not, and elements <id> that the prompt cites without a row,
// unless <id> is a reference.
std::string with_boxes(const std::string& prompt, const std::string& boxes, int num_references);

}  // namespace braid
