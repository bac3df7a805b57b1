#include "grid_family.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "pipeline/families/paged.h"
#include "text/tokenizer_files.h"

namespace braid::toy {
namespace {

namespace fs = std::filesystem;

class ToyText : public TextEncoders {
 public:
  ToyText(const fs::path& folder, Paged<T5> t5)
      : tokenizer_(load_tokenizer(folder / "tokenizer")), t5_(std::move(t5)) {}

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn&) const override {
    const auto in_use = t5_.page.use();
    const auto ids = tokenizer_->encode(prompt.text, max_sequence_length).ids;
    return {.text_BTC = t5_.network(at::tensor(ids, at::kLong).unsqueeze(0)), .pooled_BC = {}};
  }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<T5> t5_;
};

}  // namespace

Part toy_text_part(const T5Config& t5) {
  return {.role = Part::Role::kText,
          .folder = "text_encoder",
          .label = "the text encoder",
          .num_heads = t5.num_heads,
          .lists = {"encoder.block"},
          .names = [](const Checkpoint&) { return t5_names(); },
          .sharding = [=](SharedModulation) { return t5_sharding(t5); },
          .make = [=](const Weights& w) { (void)T5(t5, w); },
          .live = [](std::int64_t tokens, int) { return 1000 * tokens; }};
}

std::unique_ptr<const TextEncoders> GridFamily::load_text(const fs::path& folder, at::Device,
                                                          const WeightsOf& weights_of,
                                                          const Warn&) const {
  return std::make_unique<const ToyText>(folder,
                                         load_paged<T5>(t5_, weights_of(*text_parts().front())));
}

Tensor GridFamily::pack(const Tensor& latents) const {
  return latents.flatten(2).transpose(1, 2).contiguous();
}

Tensor GridFamily::unpack(const Tensor& tokens_BNC, PictureSize size) const {
  return tokens_BNC.transpose(1, 2).unflatten(2, {rows(size), columns(size)}).contiguous();
}

Tensor grid_positions(std::int64_t rows, std::int64_t columns, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto at_rows = at::arange(rows, options).unsqueeze(1);
  const auto at_columns = at::arange(columns, options).unsqueeze(0);
  return at::stack(at::broadcast_tensors({at_rows, at_columns}), -1).flatten(0, 1);
}

void check_text_width(std::int64_t of_transformer, const T5Config& t5) {
  require(of_transformer == t5.hidden, "the transformer takes embedded text of width ",
          of_transformer, ", the text encoder makes ", t5.hidden);
}

}  // namespace braid::toy
