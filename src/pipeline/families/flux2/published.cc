#include "pipeline/families/flux2/published.h"

namespace braid {
namespace {

CausalLmConfig mistral_small_3() {
  return {.vocab_size = 131072,
          .hidden = 5120,
          .mlp_hidden = 32768,
          .num_layers = 40,
          .num_heads = 32,
          .num_kv_heads = 8,
          .head_width = 128,
          .head_norm = HeadNorm::kNo,
          .eps = 1e-5,
          .theta = 1e9};
}

CausalLmConfig qwen3_8b() { return {.hidden = 4096, .mlp_hidden = 12288}; }

void set_klein(Flux2Config& c, std::int64_t num_double, std::int64_t num_single,
               std::int64_t num_heads) {
  c.num_double = num_double;
  c.num_single = num_single;
  c.num_heads = num_heads;
  c.mlp_hidden = 3 * c.hidden();
  c.guidance_embeds = false;
}

}  // namespace

Flux2Configs published_flux2(const std::string& name) {
  Flux2Configs c;
  c.vae = flux2_vae_config();
  if (name == "flux2-dev") {
    c.text = mistral_small_3();
    return c;
  }
  const bool is_base = name.find("base") != std::string::npos;
  const bool is_kept = name.ends_with("-kv"), is_9b = name.find("9b") != std::string::npos;
  c.kind = is_base ? Flux2Kind::kKleinBase : Flux2Kind::kKleinDistilled;
  if (is_kept) c.kind = Flux2Kind::kKleinKept;
  if (is_9b) c.text = qwen3_8b();
  if (is_9b)
    set_klein(c.flux, 8, 24, 32);
  else
    set_klein(c.flux, 5, 20, 24);
  c.flux.text_width = 3 * c.text.hidden;
  return c;
}

}  // namespace braid
