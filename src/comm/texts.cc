#include "comm/texts.h"

#include <ATen/ATen.h>

namespace braid {

Tensor tensor_of_text(std::string_view text) {
  return at::tensor(
      at::ArrayRef<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

std::vector<std::string> all_gather_texts(const Group& group, std::string_view mine) {
  const auto sizes = group.all_gather(at::full({1}, std::int64_t(mine.size()), at::kLong), 0);
  const auto all = group.all_gather(tensor_of_text(mine), 0);
  const auto* text = static_cast<const char*>(all.const_data_ptr());
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    texts.emplace_back(text, std::size_t(sizes[rank].item<std::int64_t>()));
    text += texts.back().size();
  }
  return texts;
}

}  // namespace braid
