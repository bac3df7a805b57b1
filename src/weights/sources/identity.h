// Descriptions of what weights are made of, and how: equal descriptions mean equal weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/memory.h"
#include "weights/paging/page_source.h"
#include "weights/sources/row_ranges.h"

namespace braid {

// 16 hexadecimal digits for the bytes, read by all threads.
std::string digest(std::span<const std::byte> bytes);

// Describes the ranges' stored bytes, in order. Reads them, then gives their memory back. Names,
// files and places have no influence.
std::string identity_of(const RowRanges& ranges);

// The same for whole stored tensors.
std::string identity_of(const std::vector<StoredTensor>& stored);

// "columns 0+64 128+64"; empty for all columns.
std::string identity_of(const std::vector<Share>& columns);

// What quantizing known numbers to `form` in `dtype` gives; changes whenever the quantizer does.
std::string identity_of(Quantize form, at::ScalarType dtype);

// A tensor in memory as the contents of a page.
PageSource source_of(const Tensor& tensor);

}  // namespace braid
