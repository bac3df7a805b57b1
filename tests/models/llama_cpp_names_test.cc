// Language models as llama.cpp stores them are those that transformers stores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../weights/files.h"
#include "causal_lm_fixture.h"
#include "weights/files/safetensors_writer.h"

namespace braid::llama_cpp_names_test {

using causal_lms::Fixture;
using testing::HasSubstr;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  if (const auto at = text.find(what); at != std::string::npos) text.replace(at, what.size(), by);
  return text;
}

// Other parts than the language model are in files of their own.
std::string name_of_llama_cpp(std::string name) {
  if (name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.")) return "";
  for (const char* prefix : {"language_model.", "model."}) name = replaced(name, prefix, "");
  constexpr std::pair<const char*, const char*> kRenamed[] = {
      {"layers.", "blk."},
      {"self_attn.q", "attn_q"},
      {"self_attn.k", "attn_k"},
      {"self_attn.v", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"mlp.", "ffn_"},
      {"_proj.", "."},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"embed_tokens", "token_embd"},
      {"lm_head", "output"}};
  for (const auto& [theirs, ours] : kRenamed) name = replaced(name, theirs, ours);
  return name == "norm.weight" ? "output_norm.weight" : name;
}

// The rows of each head as pairs, what is rotated together beside each other: LlamaModel.permute of
// llama.cpp's convert_hf_to_gguf.py.
Tensor paired(const Tensor& rows_NC, std::int64_t heads) {
  return rows_NC.view({heads, 2, -1, rows_NC.size(1)}).transpose(1, 2).reshape_as(rows_NC);
}

std::map<std::string, Tensor> as_llama_cpp_has(const Fixture& fixture) {
  const auto config = fixture.config();
  const bool is_paired = config.head_norm == HeadNorm::kNo;
  std::map<std::string, Tensor> tensors;
  const auto stored = fixture.checkpoint();
  for (const auto& [theirs, tensor] : stored.tensors()) {
    const auto name = name_of_llama_cpp(theirs);
    const bool is_q = name.ends_with("attn_q.weight"), is_k = name.ends_with("attn_k.weight");
    if (is_paired && (is_q || is_k))
      tensors[name] = paired(tensor.view(), is_q ? config.num_heads : config.num_kv_heads);
    else if (!name.empty())
      tensors[name] = tensor.view();
  }
  return tensors;
}

TEST(LlamaCppNames, AreThoseOfTheModelsAndTheirRowsAreUnpaired) {
  for (const auto* const model : {"qwen3", "mistral3"}) {
    const Fixture fixture(model);
    const TemporaryFolder folder;
    write_file(folder / "m.safetensors", write_safetensors(as_llama_cpp_has(fixture)));
    const auto stored = Checkpoint::open(folder.path(), "m");
    const auto want = fixture.encode(fixture.model(at::kFloat));
    EXPECT_TRUE(at::equal(fixture.encode(fixture.model({}, fixture.states(), stored)), want));
  }
}

TEST(LlamaCppNames, OfAModelOfAnotherKindAreRefused) {
  const Fixture qwen("qwen3"), mistral("mistral3");
  const auto refusal = [](const Fixture& of, const Fixture& in) {
    const TemporaryFolder folder;
    write_file(folder / "m.safetensors", write_safetensors(as_llama_cpp_has(of)));
    return message_of<std::exception>(
        [&] { in.model({}, {1}, Checkpoint::open(folder.path(), "m")); });
  };
  EXPECT_THAT(refusal(mistral, qwen), HasSubstr("without norms of queries and keys, the text "
                                                "encoder is one with them"));
  EXPECT_THAT(refusal(qwen, mistral), HasSubstr("is of a model with norms"));
}

}  // namespace braid::llama_cpp_names_test
