// Every denoiser in every layout, against itself on one rank.
#include <c10/core/InferenceMode.h>

#include <map>

#include "comm/thread.h"
#include "denoiser_inputs.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux2/sharding.h"
#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "models/flux3/sharding.h"
#include "models/zimage/model.h"
#include "models/zimage/names.h"
#include "models/zimage/sharding.h"
#include "parallel/layout.h"

namespace braid::layouts_test {

struct Layout {
  std::string fixture;
  Degrees degrees;
  SharedModulation modulation = SharedModulation::kYes;
};

std::string name_of(const Layout& layout) {
  std::string name;
  const auto& d = layout.degrees;
  for (const auto& [axis, degree] : {std::pair("Layers", d.pp), std::pair("Ring", d.ring),
                                     std::pair("Ulysses", d.ulysses), std::pair("Tp", d.tp)})
    if (degree > 1) name += axis + std::to_string(degree);
  if (d.cfg > 1) name += "Cfg" + std::to_string(d.cfg);
  if (layout.modulation == SharedModulation::kNo) name += "WholeModulation";
  name = layout.fixture + name;
  std::erase(name, '-');
  return name;
}

// The blocks of this rank's stage, divided as evenly as possible.
BlockRange blocks_of(const Mesh& mesh, std::int64_t all) {
  const auto share = share_of(all, mesh.pp.rank(), mesh.pp.size());
  return {.begin = share.begin, .count = share.count};
}

class DenoiserLayouts : public testing::TestWithParam<Layout> {
 protected:
  DenoiserPart flux2(const Mesh& mesh) const {
    const auto config = config_of(fixture_.folder(), read_flux2_config);
    const auto weights = fixture_.weights();
    const Weights w(weights, flux2_names(weights), {.tensor_parallel = mesh.tp},
                    flux2_sharding(config, GetParam().modulation));
    const auto model = std::make_shared<Flux2>(config, w, attend_over(mesh),
                                               blocks_of(mesh, flux2_shape(config).num_blocks()));
    return {.predict = [=](const DenoiserInput& in,
                           const Tensor& state) { return model->advance(in, state); },
            .rope_axes = config.rope_axes()};
  }
  DenoiserPart flux3(const Mesh& mesh) const {
    const auto config = config_of(fixture_.folder(), read_flux3_config);
    const auto weights = fixture_.weights();
    const Weights w(weights, flux3_names(weights), {.tensor_parallel = mesh.tp},
                    flux3_sharding(config, GetParam().modulation));
    return part_of(std::make_shared<const Flux3>(
        config, w, attend_over(mesh), blocks_of(mesh, flux3_shape(config).num_blocks())));
  }
  DenoiserPart zimage(const Mesh& mesh, std::map<std::string, int>* runs = nullptr) const {
    const auto config = config_of(fixture_.folder(), read_zimage_config);
    const auto weights = with_left_out(fixture_.weights());
    const Weights w(weights, zimage_names(weights), {.tensor_parallel = mesh.tp},
                    zimage_sharding(config));
    const auto model = std::make_shared<const ZImage>(
        config, w, attend_over(mesh), blocks_of(mesh, zimage_shape(config).num_blocks()));
    auto part = part_of(model);
    part.refine = [=](const DenoiserInput& in, const Tensor& text_BTC) {
      return model->refine(counting(in, runs), text_BTC);
    };
    part.predict = [=](const DenoiserInput& in, const Tensor& state) {
      return model->advance(counting(in, runs), state);
    };
    return part;
  }
  // Counts how often each place of the model is passed.
  static DenoiserInput counting(DenoiserInput in, std::map<std::string, int>* runs) {
    if (runs) in.watch = [=](const std::string& where, const Tensor&) { ++(*runs)[where]; };
    return in;
  }
  bool is(const char* family) const { return GetParam().fixture.starts_with(family); }
  DenoiserPart denoiser(const Mesh& mesh) const {
    if (is("flux3")) return flux3(mesh);
    return is("zimage") ? zimage(mesh) : flux2(mesh);
  }
  DenoiserInput input() const {
    const auto& dump = fixture_.dump();
    return is("zimage") ? zimage_input(dump, at::kFloat) : denoiser_input(dump, at::kFloat);
  }
  Tensor velocity(const Group& world, const Degrees& degrees) const {
    const c10::InferenceMode no_autograd;
    const auto mesh = make_mesh(world, degrees);
    return predict_over(mesh, denoiser(mesh))({input()}).front();
  }

  const PartFixture fixture_{GetParam().fixture};
};

TEST_P(DenoiserLayouts, EqualOneRank) {
  const auto& degrees = GetParam().degrees;
  const auto expected = velocity({}, {});
  run_ranks({.size = degrees.product()}, [&](const Group& world) {
    const auto got = velocity(world, degrees);
    ASSERT_EQ(got.sizes(), expected.sizes());
    EXPECT_LT(largest_error(got, expected), 1e-5);
  });
}

TEST_P(DenoiserLayouts, TakeRotaryTablesThatAreMadeOnce) {
  const auto& degrees = GetParam().degrees;
  run_ranks({.size = degrees.product()}, [&](const Group& world) {
    const c10::InferenceMode no_autograd;
    const auto mesh = make_mesh(world, degrees);
    const auto part = denoiser(mesh);
    const auto predict = predict_over(mesh, part);
    auto in = input();
    const auto want = predict({in}).front();
    make_ropes(in, part.rope_axes);
    EXPECT_TRUE(at::equal(predict({in}).front(), want));
    in.noise.rope.cos = -in.noise.rope.cos;
    EXPECT_FALSE(at::equal(predict({in}).front(), want)) << "they are not looked at";
  });
}

// Each rank evaluates three steps of two branches of a batch.
class RefinedText : public DenoiserLayouts {};

TEST_P(RefinedText, IsMadeOncePerPictureAndGivesTheSameBits) {
  constexpr int kSteps = 3;
  const auto& degrees = GetParam().degrees;
  run_ranks({.size = degrees.product()}, [&](const Group& world) {
    const c10::InferenceMode no_autograd;
    const auto mesh = make_mesh(world, degrees);
    std::map<std::string, int> runs;
    const auto part = zimage(mesh, &runs);
    const auto predict = predict_over(mesh, part);
    std::vector<DenoiserInput> branches = {input(), input()};
    branches[1].text.x_BLC = branches[1].text.x_BLC * 0.5;
    const auto want = predict(branches);
    runs.clear();
    const auto refined = refine_over(mesh, part)(branches);
    for (std::size_t b = 0; b < branches.size(); ++b) branches[b].refined_BTC = refined[b];
    const auto once = runs;
    for (int step = 0; step < kSteps; ++step) {
      const auto got = predict(branches);
      for (std::size_t b = 0; b < got.size(); ++b) EXPECT_TRUE(at::equal(got[b], want[b])) << b;
    }
    const int items = 2 / degrees.cfg * int(degrees.pp > 1 ? input().noise.x_BLC.size(0) : 1);
    int of_text = 0;
    for (const auto& [where, count] : runs) {
      const bool is_of_text =
          where.starts_with("context_refiner") || where.starts_with("cap_embedder");
      EXPECT_EQ(count, is_of_text ? items : items * kSteps) << where;
      EXPECT_EQ(once.contains(where), is_of_text) << where;
      of_text += is_of_text;
    }
    const auto on_all = mesh.pp.all_gather(at::full({1}, of_text, at::kLong), 0);
    const auto refiners = config_of(fixture_.folder(), read_zimage_config).num_refiners;
    EXPECT_EQ(on_all.sum().item<std::int64_t>(), 1 + refiners);
  });
}

INSTANTIATE_TEST_SUITE_P(ZImage, RefinedText,
                         testing::Values(Layout{"zimage-31", {}}, Layout{"zimage-31", {.cfg = 2}},
                                         Layout{"zimage-31", {.ulysses = 2}},
                                         Layout{"zimage-31", {.ring = 3}},
                                         Layout{"zimage-33", {.pp = 3}},
                                         Layout{"zimage-33", {.cfg = 2, .tp = 2}},
                                         Layout{"zimage-33", {.pp = 2, .ulysses = 2}}),
                         [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Flux2, DenoiserLayouts,
    testing::Values(Layout{"klein", {.tp = 2}}, Layout{"klein", {.ulysses = 3}},
                    Layout{"klein", {.pp = 3}}, Layout{"dev", {.ring = 3}},
                    Layout{"dev", {.tp = 3}}, Layout{"dev", {.tp = 3}, SharedModulation::kNo},
                    Layout{"dev", {.pp = 2, .ring = 2}}, Layout{"wide", {.ulysses = 2, .tp = 2}},
                    Layout{"five", {.ring = 2, .ulysses = 2}}),
    [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Flux3, DenoiserLayouts,
    testing::Values(Layout{"flux3", {.tp = 2}}, Layout{"flux3", {.tp = 4}, SharedModulation::kNo},
                    Layout{"flux3", {.ulysses = 2}}, Layout{"flux3", {.pp = 5}},
                    Layout{"flux3-map", {.ring = 3}}, Layout{"flux3-map", {.tp = 3}},
                    Layout{"flux3-map", {.pp = 2, .ring = 2}},
                    Layout{"flux3-map", {.pp = 3, .ulysses = 3}},
                    Layout{"flux3", {.ring = 2, .ulysses = 2, .tp = 2}}),
    [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(
    ZImage, DenoiserLayouts,
    testing::Values(Layout{"zimage-31", {.ulysses = 2}}, Layout{"zimage-31", {.ring = 3}},
                    Layout{"zimage-32", {.tp = 5}}, Layout{"zimage-32", {.pp = 3}},
                    Layout{"zimage-33", {.tp = 2}}, Layout{"zimage-33", {.pp = 2, .ulysses = 3}},
                    Layout{"zimage-33", {.ring = 2, .tp = 2}}),
    [](const auto& info) { return name_of(info.param); });

}  // namespace braid::layouts_test
