// A block with two sides, image and text, which keep their own weights and meet in attention
// (MM-DiT, Esser et al., 2024).
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width.
#pragma once

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/two_streams.h"

namespace braid {

struct JointTokens {
  Tensor image_BIC, text_BTC;
};

struct SideModulations {
  Modulation attention, mlp;
};
// The image tokens from `begin` on, where those of references have modulations of their own.
struct ReferenceModulations {
  std::int64_t begin;
  SideModulations side;
};
struct JointModulations {
  SideModulations image, text;
  std::optional<ReferenceModulations> references = {};
};

// The layers of one side. The norms are per head.
struct JointSide {
  Linear qkv, proj, mlp_in, mlp_out;
  RmsNorm q_norm, k_norm;
};
struct JointSides {
  JointSide image, text;
};

class JointBlock {
 public:
  enum class Mlp { kGelu, kSwiglu };   // for SwiGLU, mlp_in returns [gate | value]
  enum class First { kImage, kText };  // the order of the attended tokens
  struct Form {
    Mlp mlp;
    First first;
    double norm_eps = 1e-6;  // of the heads' norms
  };
  // With a second stream, the text's layers run on it beside the image's if all of them may: see
  // Linear::may_run_concurrently.
  JointBlock(JointSides sides, Form form, const std::optional<c10::Stream>& second_stream = {});

  JointTokens operator()(const JointTokens& x, const JointModulations& m, const Rope& rope,
                         const Attend& attend) const;

 private:
  JointTokens room_for_qkv(const JointTokens& x) const;
  JointTokens attended(const JointTokens& x, const JointModulations& m, const Rope& rope,
                       const Attend& attend) const;
  JointTokens finished_together(const JointTokens& x, JointTokens attended,
                                const JointModulations& m) const;
  JointTokens finished_by_run(const JointTokens& x, JointTokens attended,
                              const JointModulations& m) const;

  JointSides sides_;
  Form form_;
  TwoStreams image_and_text_;
};

}  // namespace braid
