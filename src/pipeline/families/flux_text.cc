#include "pipeline/families/flux_text.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

Paged<Clip> load_clip(const ModelFiles& files, const LoadOptions& load) {
  auto checkpoint = files.open_text_encoder("text_encoder");
  auto names = clip_names(checkpoint);
  const auto config = read_clip_config(read_json_object(files.config_of("text_encoder")));
  const Weights w(std::move(checkpoint), std::move(names), load,
                  clip_sharding(config, load.tensor_parallel.size()));
  return {.page = w.page(), .model = Clip(config, w)};
}

Paged<T5> load_t5(const ModelFiles& files, LoadOptions load, Quantize quantize) {
  load.quantize = quantize;
  const auto config = read_t5_config(read_json_object(files.config_of("text_encoder_2")));
  const Weights w(files.open_text_encoder("text_encoder_2"), t5_names(), load,
                  t5_sharding(config, load.tensor_parallel.size()));
  return {.page = w.page(), .model = T5(config, w)};
}

LoadOptions with_paging(LoadOptions load, const Paging& paging) {
  load.paging = paging;
  return load;
}

}  // namespace

FluxText::FluxText(const ModelFiles& files, LoadOptions load, Quantize quantize,
                   const Paging& paging)
    : device_(load.device),
      clip_tokenizer_(load_tokenizer(files.folder / "tokenizer")),
      t5_tokenizer_(load_tokenizer(files.folder / "tokenizer_2")),
      clip_(load_clip(files, with_paging(load, paging))),
      t5_(load_t5(files, with_paging(load, paging), quantize)) {}

Conditioning FluxText::encode(const PromptPair& prompt, int max_sequence_length,
                              const std::function<void(const std::string&)>& warn) const {
  const auto ids_of = [&](const Tokenizer& tokenizer, const std::string& text, std::int64_t length,
                          const char* encoder) {
    const auto encoding = tokenizer.encode(text, length);
    if (encoding.truncated && warn)
      warn(text_of("the prompt is longer than the ", length, " tokens that ", encoder,
                   " is given: its end is not seen"));
    return at::tensor(encoding.ids, at::kLong).unsqueeze(0).to(device_);
  };
  const auto clip_ids =
      ids_of(*clip_tokenizer_, prompt.clip, clip_tokenizer_->model_max_length(), "CLIP");
  const auto t5_ids = ids_of(*t5_tokenizer_, prompt.t5, max_sequence_length, "T5");
  Conditioning out;
  {
    const auto in_use = clip_.page.use();
    out.pooled_1C = clip_.model(clip_ids).pooled_BC;
  }
  const auto in_use = t5_.page.use();
  out.text_1TC = t5_.model(t5_ids);
  return out;
}

}  // namespace braid
