#include "comm/texts.h"

#include <ATen/ATen.h>

namespace braid {

std::vector<std::string> all_gather_texts(const Group& group, std::string mine) {
  const auto size = std::int64_t(mine.size());
  const auto sizes = group.all_gather(at::full({1}, size, at::kLong), 0);
  const auto all = group.all_gather(at::from_blob(mine.data(), {size}, at::kByte), 0);
  const auto* text = static_cast<const char*>(all.const_data_ptr());
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    texts.emplace_back(text, std::size_t(sizes[rank].item<std::int64_t>()));
    text += texts.back().size();
  }
  return texts;
}

}  // namespace braid
