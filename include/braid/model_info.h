// What can be requested of a loaded model.
#pragma once

#include <string>
#include <vector>

#include "braid/sampling.h"

namespace braid {

// What a request's guidance scale means to a family, and whether a negative prompt is used.
enum class GuidanceKind {
  kNone,            // unused: its transformer was distilled to follow prompts without guidance
  kEmbedded,        // an input of the transformer, which was distilled for it
  kEmbeddedOrTrue,  // as kEmbedded, or unused; true guidance has its own scale and needs a negative
                    // prompt
  kTrue,            // the scale of true guidance; the negative prompt defaults to ""
};

struct ModelInfo {
  std::string family;  // "FLUX.1"
  // Defaults.
  int width = 0, height = 0, steps = 0;  // pixels
  double guidance = 0;
  int max_sequence_length = 0;
  Sampler sampler = Sampler::kEuler;
  // Limits.
  int size_multiple = 16, largest_side = 0;  // pixels
  int max_text_tokens = 0;
  // Clips: the default and the largest number of frames; 1 for a model of pictures.
  struct Frames {
    int drawn = 1, most = 1;
    double per_second = 0;  // 0: a model of pictures
  };
  Frames frames = {};
  // Layers that a reference is taken apart into, and PicturesIn::resolution, the default first.
  struct Layers {
    int drawn = 0, most = 0;  // 0: the model draws none
    std::vector<int> resolutions = {};
  };
  Layers layers = {};
  bool draws_alpha = false;  // its pictures may be transparent
  bool takes_boxes = false;  // follows Request::boxes
  int num_texts = 1;         // 2: accepts a second prompt, for a second text encoder
  GuidanceKind guidance_kind = GuidanceKind::kEmbeddedOrTrue;
  // Input pictures: which are accepted, and which are required.
  struct Pictures {
    bool takes_init = false, takes_mask = false, needs_mask = false, takes_control = false;
    bool init_needs_mask = false;  // starts from a picture only to draw a part of it anew
    bool net_fills_in = false;     // a ControlNet follows the initial picture and its mask
    int most_references = 0;
    double strength = 0, strength_with_mask = 0;  // defaults
  };
  Pictures pictures = {};
};

}  // namespace braid
