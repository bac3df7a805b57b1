#include "app/files/latents_file.h"

#include <ATen/ATen.h>

#include "app/files/input_bytes.h"
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

Latents read_latents(const std::filesystem::path& path, std::optional<int> picture) {
  require_no_address("--latents", path);
  const auto file = Checkpoint::open_file(path);
  const auto& stored = find_latents(file);
  require(at::isFloatingType(stored.dtype()), path.string(), ": tensor '", stored.entry.name,
          "' should hold floating-point numbers, it holds ", element_type_name(stored.entry.type));
  auto values = numbers_of(stored).to(at::kFloat).contiguous();
  if (picture) {
    const auto pictures = values.dim() > 0 ? values.size(0) : 0;
    require(*picture <= pictures, path.string(), " should have the latents of ", *picture,
            " pictures, as picture ", *picture, " is asked for, it has those of ", pictures);
    values = values.narrow(0, *picture - 1, 1);
  }
  const auto* const data = values.const_data_ptr<float>();
  return {.shape = values.sizes().vec(), .values = {data, data + values.numel()}};
}

}  // namespace braid
