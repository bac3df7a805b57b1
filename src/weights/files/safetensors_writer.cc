#include "weights/files/safetensors_writer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/byte_order.h"
#include "base/error.h"
#include "weights/files/safetensors_header.h"

namespace braid {
namespace {

ElementType element_type_of(at::ScalarType dtype, const std::string& name) {
  switch (dtype) {
    case at::kBool:
      return ElementType::kBool;
    case at::kByte:
      return ElementType::kUint8;
    case at::kChar:
      return ElementType::kInt8;
    case at::kShort:
      return ElementType::kInt16;
    case at::kInt:
      return ElementType::kInt32;
    case at::kLong:
      return ElementType::kInt64;
    case at::kFloat8_e4m3fn:
      return ElementType::kFloat8E4M3;
    case at::kFloat8_e5m2:
      return ElementType::kFloat8E5M2;
    case at::kHalf:
      return ElementType::kFloat16;
    case at::kBFloat16:
      return ElementType::kBfloat16;
    case at::kFloat:
      return ElementType::kFloat32;
    case at::kDouble:
      return ElementType::kFloat64;
    default:
      break;
  }
  throw InputError(text_of("tensor '", name, "' has the dtype ", dtype,
                           ", which a safetensors file cannot hold"));
}

struct Entry {
  std::string name;
  ElementType type;
  at::Tensor tensor;
};

// Widest elements first, like the reference implementation: every tensor is then aligned.
std::vector<Entry> in_order(std::map<std::string, at::Tensor> tensors) {
  std::vector<Entry> entries;
  for (auto& [name, tensor] : tensors) {
    const auto type = element_type_of(tensor.scalar_type(), name);
    entries.push_back({name, type, std::move(tensor)});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return block_of(a.type).bytes > block_of(b.type).bytes;
  });
  return entries;
}

// Padded with spaces so that the data starts a cache line: float32 weights are used where they lie
// in a mapped file, and products over them are fastest, and sum in one order, from there.
std::string header_of(const std::vector<Entry>& entries,
                      const std::map<std::string, std::string>& notes) {
  auto metadata = nlohmann::ordered_json(notes);
  metadata["format"] = "pt";  // older versions of transformers refuse files without it
  nlohmann::ordered_json header = {{"__metadata__", metadata}};
  std::uint64_t begin = 0;
  for (const auto& [name, type, tensor] : entries) {
    const auto end = begin + std::uint64_t(tensor.nbytes());
    header[name] = {{"dtype", element_type_name(type)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
    begin = end;
  }
  // a GGUF file's texts may be no UTF-8
  auto text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  constexpr std::size_t kLine = 64, kLengthBytes = 8;
  text.resize((kLengthBytes + text.size() + kLine - 1) / kLine * kLine - kLengthBytes, ' ');
  return text;
}

}  // namespace

std::string write_safetensors(std::map<std::string, at::Tensor> tensors,
                              const std::map<std::string, std::string>& notes) {
  auto entries = in_order(std::move(tensors));
  const auto header = header_of(entries, notes);
  auto size = 8 + header.size();
  for (const auto& entry : entries) size += entry.tensor.nbytes();
  std::string file;
  file.reserve(size);
  append_little_endian(file, header.size(), 8);
  file += header;
  for (auto& entry : entries) {
    const auto flat = std::exchange(entry.tensor, {}).cpu().contiguous();
    file.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  }
  return file;
}

}  // namespace braid
