#include "models/causal_lm/picture_places.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "models/causal_lm/config.h"

namespace braid {
namespace {

void add_place(PicturePlaces& places, std::int64_t id, std::int64_t time, std::int64_t row,
               std::int64_t column) {
  places.ids.push_back(id);
  places.times.push_back(time);
  places.rows.push_back(row);
  places.columns.push_back(column);
}

void check_ids(const std::vector<std::int64_t>& ids, std::size_t num_pictures,
               std::int64_t image_token, std::int64_t vocab_size) {
  const auto largest = *std::max_element(ids.begin(), ids.end());
  require(largest < vocab_size, "the tokenizer makes token ", largest, ", the text encoder knows ",
          vocab_size);
  const auto marks = std::size_t(std::count(ids.begin(), ids.end(), image_token));
  require(marks == num_pictures, "with its chat the prompt marks the ",
          marks == 1 ? "place of 1 picture" : text_of("places of ", marks, " pictures"), ", there ",
          num_pictures == 1 ? "is 1" : text_of("are ", num_pictures));
}

}  // namespace

std::vector<std::int64_t> read_mrope_sections(const JsonObject& text,
                                              std::vector<std::int64_t> published,
                                              std::int64_t head_width) {
  constexpr std::int64_t kMostAngles = 1 << 20;
  const auto sections =
      rope_object(text).integers_or("mrope_section", std::move(published), 0, kMostAngles);
  const auto sum = std::accumulate(sections.begin(), sections.end(), std::int64_t(0));
  require(sections.size() == 3 && sum == head_width / 2, text.source(),
          ": 'mrope_section' should be 3 numbers that sum to half of the width of a head, ",
          head_width);
  return sections;
}

PicturePlaces places_of(const std::vector<std::int64_t>& ids,
                        const std::vector<TokenGrid>& pictures, std::int64_t image_token,
                        std::int64_t vocab_size) {
  check_ids(ids, pictures.size(), image_token, vocab_size);
  PicturePlaces places;
  std::int64_t next = 0;
  std::size_t picture = 0;
  for (const auto id : ids) {
    if (id != image_token) {
      add_place(places, id, next, next, next);
      ++next;
      continue;
    }
    const auto [rows, columns] = pictures[picture++];
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        places.of_pictures.push_back(std::int64_t(places.ids.size()));
        add_place(places, id, next, next + y, next + x);
      }
    next += std::max(rows, columns);
  }
  return places;
}

HalfSplitRope rope_of(const PicturePlaces& places, const std::vector<std::int64_t>& axes,
                      double theta, const at::TensorOptions& made) {
  const auto width = 2 * std::int64_t(axes.size());
  const auto frequencies =
      1.0 / at::pow(theta, at::arange(0, width, 2, at::kFloat) / double(width));
  const auto positions_3T =
      at::stack({at::tensor(places.times), at::tensor(places.rows), at::tensor(places.columns)});
  const auto of_angle = positions_3T.index_select(0, at::tensor(axes)).t().to(at::kFloat);
  const auto angle = of_angle * frequencies;
  return {.cos = angle.cos().to(made), .sin = angle.sin().to(made)};
}

}  // namespace braid
