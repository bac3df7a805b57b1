// The pictures of a request, as its text encoder's vision tower encodes them.
#pragma once

#include <any>
#include <vector>

#include "pipeline/families/picture_processor.h"
#include "pipeline/families/text_encoders.h"

namespace braid {

// What `network` encodes the prompt's pictures to. It is computed once for all prompts of a
// request, which have the same pictures.
template <class Network>
auto encoded_pictures(const Prompt& prompt, const PictureProcessor& process, const Network& network,
                      at::Device device) {
  using Encoded = decltype(network.encode({}));
  if (const auto* const seen = std::any_cast<Encoded>(prompt.seen.get())) return *seen;
  std::vector<Tensor> pictures;
  for (const auto& picture : prompt.pictures_13HW) pictures.push_back(process(picture).to(device));
  auto encoded = network.encode(pictures);
  if (prompt.seen) *prompt.seen = encoded;
  return encoded;
}

}  // namespace braid
