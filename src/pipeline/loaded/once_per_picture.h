// What the denoisers compute once per picture, before its first step: the blocks' modulations in
// all steps, rotary tables, the text after the blocks that see only it, and the keys and values of
// a prefix.
#pragma once

#include <map>
#include <optional>

#include "pipeline/loaded/denoisers.h"

namespace braid {

// When the prefix of a sequence causal by blocks is evaluated (TextTokens::kPrefix).
enum class Prefix { kInEveryStep, kKept };

// The pictures of one branch, each with the timesteps of all noise levels that the branch's `steps`
// have, one after the other; neighbours of one level share it.
std::vector<DenoiserInput> with_all_timesteps(const std::vector<DenoiserInput>& steps);
// The modulations of a batch's pictures, each [S M] -> [S B M].
Tensor as_batch(at::TensorList made_SM);

class OncePerPicture {
 public:
  // `steps`: the branches of every evaluation as predict() will get them, with any latents of their
  // batch. Each denoiser computes what the steps that it serves need; `on_modulated` is called
  // between the modulations and the text. A kept prefix is forgotten with the result. Collective
  // over the ranks of a picture; `denoisers` outlives the result.
  OncePerPicture(
      const Denoisers& denoisers, const std::vector<std::vector<DenoiserInput>>& steps,
      Prefix prefix = Prefix::kInEveryStep, const std::function<void()>& on_modulated = [] {});

  // A step's branches, with what was computed for them, and without a prefix that is kept.
  std::vector<DenoiserInput> completed(std::vector<DenoiserInput> branches) const;
  // Their velocities, as Denoisers::predict().
  std::vector<Tensor> predict(const std::vector<DenoiserInput>& branches) const {
    return denoisers_.predict(completed(branches));
  }

  // What it holds.
  struct Bytes {
    std::int64_t modulations = 0, ropes = 0, text = 0;
  };
  Bytes bytes() const;

 private:
  struct Branch {
    Tensor modulations_SBM, refined_BTC;  // undefined: steps compute their own
    std::map<int, std::int64_t> rows;     // of the modulations, by the number of the step
    Rope noise, text;                     // of the runs of tokens
    std::vector<Rope> references;
  };
  using Steps = std::vector<DenoiserInput>;  // of one branch
  void modulate(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                std::map<int, Branch>& branches) const;
  void make_ropes(const Denoiser& denoiser, const std::map<int, Steps>& steps,
                  std::map<int, Branch>& branches) const;
  void refine(const Denoiser& denoiser, const std::map<int, Steps>& steps,
              std::map<int, Branch>& branches) const;
  void keep_prefixes(const Denoiser& denoiser, const std::map<int, Steps>& steps) const;
  DenoiserInput with_made(DenoiserInput in) const;

  // Exists while prefixes are kept, also those of a constructor that throws.
  class Kept {
   public:
    explicit Kept(const Denoisers& denoisers) : denoisers_(denoisers) {}
    ~Kept() { denoisers_.forget_references(); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    const Denoisers& denoisers_;
  };

  const Denoisers& denoisers_;
  std::vector<std::map<int, Branch>> by_denoiser_;  // then by number of the branch
  std::optional<Kept> kept_;
};

}  // namespace braid
