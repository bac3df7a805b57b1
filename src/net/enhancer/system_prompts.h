// What an enhancer is told to do, and how it is asked: its checkpoint says both.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace braid::net {

enum class EnhancerKind {
  kPlain,      // any chat model: the server's own sampling
  kRewriter,   // Qwen-Image-2.1's enhancers: system_prompt.txt; they think, and answer JSON
  kCaptioner,  // FLUX.3's: system_prompts.json; greedy, without thoughts
};

struct SystemPrompts {
  EnhancerKind kind = EnhancerKind::kPlain;
  // All of them, by their task: "t2i", "i2i", "t2i_bbox" or "i2i_bbox".
  std::map<std::string, std::string> texts = {};
};

// `place`: a file of text, an enhancer's folder with a system_prompt.txt or system_prompts.json,
// such a file, or the name of its repository in Hugging Face's cache. Throws InputError.
SystemPrompts read_system_prompts(const std::filesystem::path& place);

// Those that a model's folder has for its enhancer, in it or in `prompt_upsampler` or
// `prompt_enhancer`; else Braid's own, for any chat model.
SystemPrompts system_prompts_for(const std::filesystem::path& model);

}  // namespace braid::net
