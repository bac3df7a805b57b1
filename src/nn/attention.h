// Attention as a value: the function a model attends with. Layouts wrap it.
#pragma once

#include <functional>
#include <type_traits>

#include "ops/ops.h"

namespace braid {

// One attention between tokens: q [B H L D], k v [B G L D] -> [B H L D]. G divides H, as in
// ops::attention. Under context parallelism a rank passes its share of the tokens.
struct AttentionInput {
  Tensor q, k, v;
  // These tokens' Tokens::span_L2, for a sequence causal by blocks. Undefined: a query sees all.
  Tensor span_L2 = {};
  // Keys and values [B G S D] of other tokens, which stand before these and which all queries see;
  // undefined: there are none.
  Tensor before_k = {}, before_v = {};
};

// Attention of an image to a replicated text (cross-attention) is not between ranks: models call
// ops::attention for it.
class Attend {
 public:
  Attend() = default;
  // Wraps a function of q, k and v, or of an AttentionInput. The former knows no masks: it throws
  // Error for an input with spans.
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, Attend>) Attend(Function function)
      : attend_(general(std::move(function))) {}

  Tensor operator()(const AttentionInput& in) const { return attend_(in); }
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v) const {
    return attend_({.q = q, .k = k, .v = v});
  }
  explicit operator bool() const { return bool(attend_); }

 private:
  using General = std::function<Tensor(const AttentionInput&)>;
  using Plain = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;

  template <class Function>
  static General general(Function function) {
    if constexpr (std::is_invocable_v<Function, const AttentionInput&>)
      return function;
    else
      return unmasked(std::move(function));
  }
  static General unmasked(Plain attend);

  General attend_;
};

// Attention of tokens that are all here.
Tensor attention_here(const AttentionInput& in);

// The input with its own keys behind those before them.
AttentionInput with_all_keys(AttentionInput in);

// Which keys a query sees, by the spans of both: bool [L S].
Tensor seen_keys(const Tensor& span_of_queries_L2, const Tensor& span_of_keys_S2);

// Attention where each query sees the keys that seen_keys() says. Masks are made for so many pairs
// of a query and a key at a time: that of all would outgrow the tokens, by their square.
constexpr std::int64_t kMaskedPairs = 8 << 20;
Tensor attention_by_spans(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                          const Tensor& span_of_queries_L2, const Tensor& span_of_keys_S2);

// [B L (H D)] -> [B L H D]; H comes from the tensor, so a share of the heads just works.
Tensor split_heads(const Tensor& x_BLC, std::int64_t head_width);

// `attend` for tensors as projections return them: q [B L H D], k v [B L G D] -> [B L (H D)]
Tensor attend_tokens(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                     const Tensor& v_BLGD);
Tensor attend_tokens(const Attend& attend, const ops::RotatedHeads& heads, const Tensor& v_BLGD);

// Attends over a sequence causal by blocks, whose first tokens are a prefix that sees nothing
// behind it: `span_P2` are the spans of these P tokens, the others see all. Each rank passes its
// share.
Tensor attend_behind_prefix(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                            const Tensor& v_BLGD, const Tensor& span_P2);

}  // namespace braid
