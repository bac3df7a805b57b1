// A random pipeline of small shapes of one family, and requests to it: what the suites of all
// families need to know of one. parity_test.cc checks the numbers of these against diffusers.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "message_of.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/proofs/probe.h"
#include "temporary_folder.h"

namespace braid {

struct Drawn {
  std::vector<Picture> pictures;
  RunFacts facts;

  const Tensor& operator[](const std::string& name) const { return facts.recording.at(name); }
};

struct SmallModel {
  std::filesystem::path folder;
  Request plain;  // one branch
  // Two branches of unequal lengths, and references if the family keeps theirs.
  Request guided;
  // The factor by which the guidance g of `guided` multiplies a branch's error: g times one and
  // g - 1 times the other where it begins at 1, g + 1 times and g times where it begins at 0.
  double magnified = 1;
  int most_tp = 2;                // ranks of tensor parallelism
  ProbeOptions probe = {};        // of verify and bench
  std::size_t num_watched = 0;    // places that verify compares, the end among them
  std::int64_t probe_tokens = 0;  // text's among them

  PipelineOptions with(const Layout& layout = {}, const Memory& memory = {}) const {
    return {.model = folder,
            .dtype = Dtype::kFloat32,
            .threads = degrees_of(layout).product(),  // the bits of sums depend on it
            .layout = layout,
            .memory = memory};
  }
  // From a folder in which it, or a part of it, has been stored otherwise.
  PipelineOptions from(const std::filesystem::path& stored) const {
    auto options = with();
    options.model = stored;
    return options;
  }
  Drawn drawn(const PipelineOptions& options) const { return drawn(options, plain); }
  Drawn drawn(const PipelineOptions& options, const Request& request) const {
    auto [pictures, facts] =
        Engine(options, {}).generate(request, {}, {.record = RecordTensors::kYes});
    return {.pictures = std::move(pictures), .facts = std::move(facts)};
  }
  // The error for the model with other values in one of its JSON files; empty if it still draws.
  std::string refusal_with(const char* file, const Json& values) const {
    const TemporaryFolder scratch;
    const auto changed = scratch / "model";
    std::filesystem::copy(folder, changed, std::filesystem::copy_options::recursive);
    edit_json(changed / file, [&](Json& json) { json.merge_patch(values); });
    return message_of([&] { drawn(from(changed)); });
  }
};

inline std::filesystem::path small_pipeline(const std::string& name) {
  return std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity" / name / "model";
}

inline double relative_error(const Tensor& got, const Tensor& want) {
  return ((got - want).abs().max() / want.abs().max()).item<double>();
}

// Noise bit for bit; what follows to 1e-5, latents to as many times that as guidance magnifies.
inline void expect_as_drawn(const Drawn& got, const Drawn& want, double magnified) {
  EXPECT_TRUE(at::equal(got["latents_initial"], want["latents_initial"]));
  for (const auto& [name, bound] : {std::pair{"prompt_embeds", 1e-5},
                                    {"velocity_first", 1e-5},
                                    {"latents_final", magnified * 1e-5}}) {
    ASSERT_EQ(got[name].sizes(), want[name].sizes()) << name;
    EXPECT_LE(relative_error(got[name], want[name]), bound) << name;
  }
}

}  // namespace braid
