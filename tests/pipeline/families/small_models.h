// The families' small models.
#pragma once

#include "pictures.h"
#include "small_model.h"

namespace braid {

inline const Request kSmallRequest{.prompts = {"a small red circle on a blue background"},
                                   .width = 112,
                                   .height = 80,
                                   .steps = 2,
                                   .guidance = 1,
                                   .max_sequence_length = 80,
                                   .seed = 5};

// `plain` with guidance, and a negative prompt that is longer than the prompt.
inline Request guided_from(Request plain) {
  plain.guidance = 3;
  plain.negative_prompt = "blurry, two stars; a green ring above a pink square, a purple heart";
  plain.max_sequence_length = 120;
  return plain;
}

inline const ProbeOptions kSmallProbe{.width = 112, .height = 80, .max_sequence_length = 40};

// 6 heads, 1 + 1 + 2 blocks; 2 key heads in the text encoder. 35 image tokens, padded to 64, and 31
// of text, padded to 32; in the branches of `guided` 32 and 64. Verify compares text and image as
// they come in, two refiners, two blocks of both, the end.
inline const SmallModel kZImage = [] {
  auto plain = kSmallRequest;
  plain.guidance = 0;
  plain.max_sequence_length = 31;
  return SmallModel{.folder = small_pipeline("zimage-turbo"),
                    .plain = plain,
                    .guided = guided_from(plain),
                    .magnified = 7,
                    .most_tp = 4,  // 2 2 1 1 heads
                    .probe = kSmallProbe,
                    .num_watched = 2 + 2 + 2 * 2 + 1,
                    .probe_tokens = 64 + 64};
}();

// 24 heads, of which four each see one of 6 of keys; 2 blocks; 4 heads of text, two of keys. 35
// image tokens. Verify compares the image as it comes in, six places of the text's fusion, two
// blocks of two kinds of tokens, the end.
inline const SmallModel kKrea2 = [] {
  auto plain = kSmallRequest;
  plain.guidance = 0;
  return SmallModel{.folder = small_pipeline("krea2"),
                    .plain = plain,
                    .guided = guided_from(plain),
                    .magnified = 7,
                    .most_tp = 8,  // 3 queries for 3/4 of a head of keys
                    .probe = kSmallProbe,
                    .num_watched = 1 + 6 + 2 * 2 + 1,
                    .probe_tokens = 35 + 40};
}();

// 4 heads, 2 blocks; 3 heads of text, one of keys. 35 image tokens.
inline const SmallModel kQwenImage{.folder = small_pipeline("qwen-image"),
                                   .plain = kSmallRequest,
                                   .guided = guided_from(kSmallRequest),
                                   .magnified = 5,
                                   .most_tp = 4,
                                   .probe = kSmallProbe,
                                   .num_watched = 2 + 2 * 2 + 1,
                                   .probe_tokens = 35 + 40};

// 4 heads, 2 blocks; 4 heads of text, two of keys. 24 image tokens; 18 and more of text. Verify
// compares the image as it comes in, two blocks, the end.
inline const SmallModel kQwen21 = [] {
  auto plain = kSmallRequest;
  plain.width = 96;
  plain.height = 64;
  plain.guidance.reset();
  plain.max_sequence_length.reset();
  auto guided = guided_from(plain);
  guided.max_sequence_length.reset();
  return SmallModel{.folder = small_pipeline("qwen21"),
                    .plain = plain,
                    .guided = guided,
                    .magnified = 5,
                    .most_tp = 4,
                    .probe = {.width = 96, .height = 64, .max_sequence_length = 40},
                    .num_watched = 1 + 2 + 1,
                    .probe_tokens = 24 + 40};
}();

// 4 heads; 2 blocks of each mode and 2 of all; 4 heads of text, two of keys. 35 image tokens; 80 of
// text, in the other branch of `guided` 160, and two references of 20 and 24. Verify compares text
// and image as they come in, after their own two blocks, after two of both, the end.
inline const SmallModel kFlux3 = [] {
  auto plain = kSmallRequest;
  plain.max_sequence_length = 160;
  auto guided = plain;
  guided.guidance = 3;
  guided.negative_prompt = "blurry, two stars";
  for (int i = 0; i < 20; ++i) *guided.negative_prompt += ", a green ring above a pink square";
  guided.pictures.references = {noise_picture(75, 90), noise_picture(64, 96)};
  return SmallModel{.folder = small_pipeline("flux3"),
                    .plain = plain,
                    .guided = guided,
                    .magnified = 5,
                    .most_tp = 4,
                    .probe = kSmallProbe,
                    .num_watched = 2 + 2 * 2 + 2 * 2 + 1,
                    .probe_tokens = 35 + 40};
}();

}  // namespace braid
