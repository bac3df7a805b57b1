// Safetensors files for tests, written byte by byte so that they may be malformed.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::testing_files {

namespace fs = std::filesystem;

inline std::string bytes_of_length(std::uint64_t length) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[std::size_t(i)] = char(length >> (8 * i));
  return bytes;
}

inline std::string file_of(const std::string& header, const std::string& data) {
  return bytes_of_length(header.size()) + header + data;
}

struct FloatTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// A well-formed float32 file; `pad` spaces after the header move the data off its alignment.
inline std::string float_file(const std::vector<FloatTensor>& tensors, int pad = 0) {
  std::string header = "{", data;
  for (const auto& t : tensors) {
    std::string shape;
    for (const auto extent : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    const auto begin = data.size();
    data.append(reinterpret_cast<const char*>(t.values.data()), 4 * t.values.size());
    header += (header.size() > 1 ? ",\"" : "\"") + t.name + R"(":{"dtype":"F32","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  return file_of(header + std::string(std::size_t(pad), ' '), data);
}

}  // namespace braid::testing_files
