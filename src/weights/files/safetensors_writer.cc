#include "weights/files/safetensors_writer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

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
std::vector<Entry> in_order(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, element_type_of(tensor.scalar_type(), name), tensor});
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return block_of(a.type).bytes > block_of(b.type).bytes;
  });
  return entries;
}

// Padded with spaces so that the data starts a cache line: float32 weights are used where they lie
// in a mapped file, and products over them are fastest, and sum in one order, from there.
std::string header_of(const std::vector<Entry>& entries) {
  auto header = nlohmann::ordered_json::object();
  std::uint64_t begin = 0;
  for (const auto& [name, type, tensor] : entries) {
    const auto end = begin + std::uint64_t(tensor.nbytes());
    header[name] = {{"dtype", element_type_name(type)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
    begin = end;
  }
  auto text = header.dump();
  constexpr std::size_t kLine = 64, kLengthBytes = 8;
  text.resize((kLengthBytes + text.size() + kLine - 1) / kLine * kLine - kLengthBytes, ' ');
  return text;
}

}  // namespace

std::string write_safetensors(const std::map<std::string, at::Tensor>& tensors) {
  const auto entries = in_order(tensors);
  const auto header = header_of(entries);
  std::string file;
  for (int i = 0; i < 8; ++i) file += char(header.size() >> (8 * i) & 0xff);  // little-endian
  file += header;
  for (const auto& entry : entries) {
    const auto flat = entry.tensor.cpu().contiguous();
    file.append(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
  }
  return file;
}

}  // namespace braid
