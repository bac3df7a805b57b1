#include "models/qwen3_vl/model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

// The token ids, with each picture's token repeated to its size, and every token's position: time,
// row, column. Text after a picture continues past its longer side.
struct Places {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> times, rows, columns;
  std::vector<std::int64_t> of_pictures;  // indices of picture tokens

  void add(std::int64_t id, std::int64_t time, std::int64_t row, std::int64_t column) {
    ids.push_back(id);
    times.push_back(time);
    rows.push_back(row);
    columns.push_back(column);
  }
};

Places places_of(const std::vector<std::int64_t>& ids,
                 const std::vector<EncodedPictures::Grid>& pictures, const Qwen3VlConfig& c) {
  Places places;
  std::int64_t next = 0;
  std::size_t picture = 0;
  for (const auto id : ids) {
    if (id != c.image_token) {
      places.add(id, next, next, next);
      ++next;
      continue;
    }
    const auto [rows, columns] = pictures[picture++];
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        places.of_pictures.push_back(std::int64_t(places.ids.size()));
        places.add(id, next, next + y, next + x);
      }
    next += std::max(rows, columns);
  }
  return places;
}

// Angles alternate between time, rows and columns; once two are used up, the rest belong to time.
HalfSplitRope interleaved_rope(const Places& places, const Qwen3VlConfig& c,
                               const at::TensorOptions& made) {
  const auto width = c.text.head_width;
  const auto frequencies =
      1.0 / at::pow(c.text.theta, at::arange(0, width, 2, at::kFloat) / double(width));
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < width / 2; ++i)
    axes.push_back(i % 3 != 0 && i < 3 * c.sections[std::size_t(i % 3)] ? i % 3 : 0);
  const auto positions_3T =
      at::stack({at::tensor(places.times), at::tensor(places.rows), at::tensor(places.columns)});
  const auto of_angle = positions_3T.index_select(0, at::tensor(axes)).t().to(at::kFloat);
  const auto angle = of_angle * frequencies;
  return {.cos = angle.cos().to(made), .sin = angle.sin().to(made)};
}

void check_ids(const std::vector<std::int64_t>& ids, std::size_t num_pictures,
               const Qwen3VlConfig& c) {
  const auto largest = *std::max_element(ids.begin(), ids.end());
  require(largest < c.text.vocab_size, "the tokenizer makes token ", largest,
          ", the text encoder knows ", c.text.vocab_size);
  const auto marks = std::size_t(std::count(ids.begin(), ids.end(), c.image_token));
  require(marks == num_pictures, "the prompt marks the places of ", marks, " pictures, there ",
          num_pictures == 1 ? "is 1" : text_of("are ", num_pictures));
}

}  // namespace

Qwen3Vl::Qwen3Vl(const Qwen3VlConfig& c, const Weights& w)
    : config_(c),
      options_(at::TensorOptions(w.dtype()).device(w.device())),
      tower_(w / "visual", c.vision),
      embedding_(w / "language_model" / "embed_tokens", c.text.vocab_size, c.text.hidden),
      layers_(w / "language_model" / "layers", c.text.num_layers, c.text) {
  const auto norm = w / "language_model" / "norm";
  w.wants_unused() ? (void)LlamaRmsNorm(norm, c.text.hidden, c.text.eps) : norm.skip();
  w.finish();
}

EncodedPictures Qwen3Vl::encode(const std::vector<Tensor>& pictures) const {
  EncodedPictures together;
  std::vector<Tensor> tokens;
  std::vector<std::vector<Tensor>> added;
  const auto side = config_.vision.pixels_per_token();
  for (const auto& picture : pictures) {
    auto seen = tower_(picture);
    together.grids.push_back({.rows = picture.size(1) / side, .columns = picture.size(2) / side});
    tokens.push_back(seen.tokens_MC);
    added.resize(seen.added_MC.size());
    for (std::size_t i = 0; i < added.size(); ++i) added[i].push_back(seen.added_MC[i]);
  }
  if (!tokens.empty()) together.all.tokens_MC = at::cat(tokens);
  for (const auto& of_layer : added) together.all.added_MC.push_back(at::cat(of_layer));
  return together;
}

Tensor Qwen3Vl::operator()(const std::vector<std::int64_t>& ids,
                           const EncodedPictures& pictures) const {
  check_ids(ids, pictures.grids.size(), config_);
  const auto places = places_of(ids, pictures.grids, config_);
  const auto ids_1T = at::tensor(places.ids).unsqueeze(0);
  const TextRun all{.begin = 0, .count = ids_1T.size(1)};
  const PackedPrompts prompt(ids_1T, std::span(&all, 1), Pads::kSkipped);
  const auto rope = interleaved_rope(places, config_, options_);
  const auto& seen = pictures.all;
  const auto where = at::tensor(places.of_pictures, at::kLong).to(options_.device());
  auto x = embedding_(ids_1T);
  if (seen.tokens_MC.defined()) x = x.index_copy(1, where, seen.tokens_MC.unsqueeze(0));
  layers_.for_each([&](std::int64_t i, const CausalLmLayer& layer) {
    x = layer(x, prompt, rope);
    if (i < std::int64_t(seen.added_MC.size()))
      x = x.index_add(1, where, seen.added_MC[std::size_t(i)].unsqueeze(0));
  });
  return x;
}

}  // namespace braid
