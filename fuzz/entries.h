// Invariants of the tensors in an accepted header.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "weights/files/element_type.h"

inline void expect(bool holds) {
  if (!holds) std::abort();
}

// Each lies inside the file, is as large as bytes_of(entry) says, and overlaps no other.
template <class BytesOf>
void check_entries(std::vector<braid::TensorEntry> entries, std::uint64_t file_size,
                   BytesOf bytes_of) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const auto& entry : entries) {
    const std::uint64_t bytes = bytes_of(entry);
    expect(entry.size == bytes && entry.begin <= file_size && bytes <= file_size - entry.begin);
    expect(bytes == 0 || entry.begin >= end);
    end = std::max(end, entry.begin + bytes);
  }
}
