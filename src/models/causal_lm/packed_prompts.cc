#include "models/causal_lm/packed_prompts.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace braid {

PackedPrompts::PackedPrompts(const Tensor& ids_BL, std::span<const TextRun> texts, Pads pads)
    : length_(ids_BL.size(1)), texts_(texts.begin(), texts.end()) {
  check(std::int64_t(texts.size()) == ids_BL.size(0), texts.size(), " texts in ", ids_BL.size(0),
        " prompts");
  const auto ids = ids_BL.cpu();
  const auto positions = at::arange(length_, at::kLong);
  std::vector<Tensor> rows, their_positions;
  std::int64_t first = 0;
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const auto [begin, count] = texts_[std::size_t(b)];
    check(begin >= 0 && count > 0 && begin + count <= length_, "a text of ", count, " tokens from ",
          begin, " in a prompt of ", length_);
    const auto before = ids[b].narrow(0, 0, begin);
    check(begin == 0 || before.eq(before[0]).all().item<bool>(), "tokens before a text differ");
    const auto end = begin + count;
    const auto left = length_ - end;
    const auto behind = pads == Pads::kAtOne ? std::min<std::int64_t>(left, 1) : left;
    prompts_.push_back({.first = first,
                        .before = pads != Pads::kSkipped && begin > 0 ? 1 : 0,
                        .text = count,
                        .behind = pads != Pads::kSkipped ? behind : 0});
    const auto& prompt = prompts_.back();
    const auto start = begin - prompt.before;
    rows.push_back(ids[b].narrow(0, start, prompt.rows()));
    their_positions.push_back(positions.narrow(0, start, prompt.rows()));
    if (pads == Pads::kAtOne && prompt.behind > 0)
      their_positions.back() =
          at::cat({positions.narrow(0, start, prompt.rows() - 1), at::ones({1}, at::kLong)});
    first += prompt.rows();
  }
  ids_1T_ = at::cat(rows).unsqueeze(0);
  positions_T_ = at::cat(their_positions);
}

Tensor PackedPrompts::unpacked(const Tensor& x_1TC) const {
  const auto batch = std::int64_t(prompts_.size());
  const auto out = at::zeros({batch, length_, x_1TC.size(2)}, x_1TC.options());
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto& prompt = prompts_[std::size_t(b)];
    const auto begin = texts_[std::size_t(b)].begin, encoded = prompt.text + prompt.behind;
    const auto rows = x_1TC[0].narrow(0, prompt.first, prompt.rows());
    out[b].narrow(0, begin, encoded).copy_(rows.narrow(0, prompt.before, encoded));
    if (prompt.before > 0) out[b].narrow(0, 0, begin).copy_(rows.narrow(0, 0, 1));  // to each
    const auto alike = length_ - begin - encoded;
    if (prompt.behind > 0 && alike > 0)
      out[b].narrow(0, begin + encoded, alike).copy_(rows.narrow(0, prompt.rows() - 1, 1));
  }
  return out;
}

}  // namespace braid
