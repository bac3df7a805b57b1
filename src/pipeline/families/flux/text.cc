#include "pipeline/families/flux/text.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "text/tokenizer_files.h"

namespace braid {

std::vector<PromptReader> flux_prompt_readers() {
  return {{.encoder = "CLIP",
           .tokenizer = "tokenizer",
           .limit = PromptReader::Limit::kTokenizer,
           .vectors = PromptReader::Vectors::kAll},
          {.encoder = "T5",
           .tokenizer = "tokenizer_2",
           .reads = PromptReader::Reads::kSecondPrompt,
           .vectors = PromptReader::Vectors::kAll}};
}

FluxText::FluxText(const std::filesystem::path& folder, at::Device device, Paged<Clip> clip,
                   Paged<T5> t5)
    : device_(device),
      clip_tokenizer_(load_tokenizer(folder / "tokenizer")),
      t5_tokenizer_(load_tokenizer(folder / "tokenizer_2")),
      clip_(std::move(clip)),
      t5_(std::move(t5)) {}

// An empty second prompt counts as none, as in the reference.
Condition FluxText::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto ids_of = [&](const Tokenizer& tokenizer, const std::string& text, std::int64_t length,
                          const char* encoder) {
    const auto encoding = tokenizer.encode(tokenizer.with_all_vectors(text), length);
    if (encoding.truncated) warn_of_cut(length, warn, text_of(encoder, " reads"));
    return at::tensor(encoding.ids, at::kLong).unsqueeze(0).to(device_);
  };
  const auto& second = prompt.second.empty() ? prompt.text : prompt.second;
  const auto clip_ids =
      ids_of(*clip_tokenizer_, prompt.text, clip_tokenizer_->model_max_length(), "CLIP");
  const auto t5_ids = ids_of(*t5_tokenizer_, second, max_sequence_length, "T5");
  Condition out;
  {
    const auto in_use = clip_.page.use();
    out.pooled_BC = clip_.network(clip_ids).pooled_BC;
  }
  const auto in_use = t5_.page.use();
  out.text_BTC = t5_.network(t5_ids);
  return out;
}

}  // namespace braid
