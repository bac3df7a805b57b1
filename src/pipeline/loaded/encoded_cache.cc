#include "pipeline/loaded/encoded_cache.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"

namespace braid {
namespace {

// Sizes and values.
std::string digest_of(const Tensor& picture) {
  const auto host = picture.to(at::kCPU).contiguous();
  const std::string_view bytes(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  return text_of(host.sizes(), " ", host.scalar_type(), " ", sha256_hex(bytes));
}

std::int64_t bytes_of(const EncodedKey& key, const EncodedResult& result) {
  auto bytes = std::int64_t(key.what.size());
  for (const auto& tensor : result.tensors)
    if (tensor.defined()) bytes += std::int64_t(tensor.nbytes());
  return bytes;
}

}  // namespace

EncodedKey key_of_prompt(const Prompt& prompt, int max_sequence_length,
                         std::vector<AppliedAdapter> adapters) {
  EncodedKey key{.what = text_of("prompt ", max_sequence_length, " ", prompt.text.size(), " ",
                                 prompt.second.size(), " ", prompt.text, prompt.second),
                 .adapters = std::move(adapters)};
  for (const auto& picture : prompt.pictures_13HW) key.what += "\n" + digest_of(picture);
  return key;
}

EncodedKey key_of_picture(const Tensor& picture, const std::string& how) {
  return {.what = "picture " + how + "\n" + digest_of(picture)};
}

const EncodedResult* EncodedCache::find(const EncodedKey& key) {
  const auto it =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.key == key; });
  if (it == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, it);
  ++use_.found;
  return &it->result;
}

void EncodedCache::keep(EncodedKey key, const EncodedResult& result) {
  ++use_.made;
  const auto bytes = bytes_of(key, result);
  if (bytes > most_bytes_) return;
  while (use_.bytes + bytes > most_bytes_) {
    use_.bytes -= kept_.back().bytes;
    kept_.pop_back();
  }
  Kept kept{.key = std::move(key),
            .result = {.tensors = {}, .warnings = result.warnings},
            .bytes = bytes};
  for (const auto& tensor : result.tensors)
    kept.result.tensors.push_back(
        tensor.defined() ? tensor.to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true)
                         : tensor);
  use_.bytes += bytes;
  kept_.push_front(std::move(kept));
}

}  // namespace braid
