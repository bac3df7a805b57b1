// What a loaded model can be asked for.
#pragma once

#include <string>

namespace braid {

// What the guidance scale of a request is to a family, and whether there is a negative prompt.
enum class GuidanceKind {
  kNone,            // nothing: its transformer was distilled to follow prompts without
  kEmbedded,        // an input of the transformer, which was distilled for it
  kEmbeddedOrTrue,  // the same, or nothing; true guidance has a scale of its own, and needs a
                    // negative prompt
  kTrue,            // true guidance's; the negative prompt is empty where none is given
};

struct ModelInfo {
  std::string family;  // "FLUX.1"
  // What a request gets that says nothing.
  int width = 0, height = 0, steps = 0;  // pixels
  double guidance = 0;
  int max_sequence_length = 0;
  // What it may ask for.
  int size_multiple = 16, largest_side = 0;  // pixels
  int max_text_tokens = 0;
  int num_texts = 1;  // 2: there may be a second prompt, for a second text encoder
  GuidanceKind guidance_kind = GuidanceKind::kEmbeddedOrTrue;
  // Pictures that it may bring along, and those that it must.
  struct Pictures {
    bool takes_init = false, takes_mask = false, needs_mask = false, takes_control = false;
    int most_references = 0;
    double strength = 0, strength_with_mask = 0;  // where it says none
  };
  Pictures pictures = {};
};

}  // namespace braid
