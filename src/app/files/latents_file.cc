#include "app/files/latents_file.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "weights/files/checkpoint.h"
#include "weights/sources/row_ranges.h"

namespace braid {
namespace {

const StoredTensor& find_latents(const Checkpoint& file) {
  for (const auto* const name : {"latents", "latents_initial"})
    if (const auto* const tensor = file.find(name)) return *tensor;
  require(file.tensors().size() == 1, file.source(),
          " should have a tensor 'latents' or 'latents_initial', or just one tensor; it has ",
          file.tensors().size(), " others");
  return file.tensors().begin()->second;
}

}  // namespace

Latents read_latents(const std::filesystem::path& path) {
  const auto file = Checkpoint::open_file(path);
  const auto& stored = find_latents(file);
  require(at::isFloatingType(stored.dtype()), path.string(), ": tensor '", stored.entry.name,
          "' should hold floating-point numbers, it holds ", element_type_name(stored.entry.type));
  const auto values = numbers_of(stored).to(at::kFloat).contiguous();
  const auto* const data = values.const_data_ptr<float>();
  return {.shape = stored.entry.shape, .values = {data, data + values.numel()}};
}

}  // namespace braid
