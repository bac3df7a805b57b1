// Language models of tests/data/parity/text_encoders, with transformers' hidden states.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "dumps.h"
#include "models/causal_lm/model.h"
#include "models/causal_lm/names.h"

namespace braid::causal_lms {

namespace fs = std::filesystem;

const fs::path kFixtures = kParity / "text_encoders";

// Where each prompt's text lies, of a mask whose ones follow each other.
inline std::vector<TextRun> texts_of(const Tensor& mask_BL) {
  std::vector<TextRun> texts;
  for (const auto& row : mask_BL.unbind(0))
    texts.push_back(
        {.begin = row.argmax().item<std::int64_t>(), .count = row.sum().item<std::int64_t>()});
  return texts;
}

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : folder_(kFixtures / name),
        manifest_(read_json(folder_ / "manifest.json")),
        dump_(folder_ / "expected.safetensors") {}

  CausalLmConfig config() const {
    return read_causal_lm_config(read_json_object(folder_ / "model" / "config.json"));
  }
  HiddenStates states() const { return manifest_["states"].get<HiddenStates>(); }
  std::vector<std::string> paddings() const {
    return manifest_["paddings"].get<std::vector<std::string>>();
  }
  Checkpoint checkpoint() const { return Checkpoint::open(folder_ / "model", "model"); }
  Tensor dumped(const std::string& name) const { return dump_[name]; }

  CausalLm model(const LoadOptions& options, HiddenStates states, const Checkpoint& stored) const {
    const auto shardings = causal_lm_sharding(config());
    return {config(), std::move(states),
            Weights(stored, causal_lm_names(stored, config()), options, shardings)};
  }
  CausalLm model(at::ScalarType dtype) const {
    return model({.dtype = dtype}, states(), checkpoint());
  }
  Tensor encode(const CausalLm& model, const std::string& padding, Pads pads) const {
    return model(dumped(padding + ".ids"), texts_of(dumped(padding + ".mask")), pads);
  }
  Tensor encode(const CausalLm& model) const {
    return encode(model, paddings().front(), Pads::kEncoded);
  }

 private:
  const c10::InferenceMode no_autograd_;
  fs::path folder_;
  Json manifest_;
  Dump dump_;
};

}  // namespace braid::causal_lms
