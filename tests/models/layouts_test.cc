// Every denoiser in every layout, against itself on one rank.
#include <c10/core/InferenceMode.h>

#include "comm/thread.h"
#include "denoiser_inputs.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux2/sharding.h"
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
  for (const auto& [axis, degree] : {std::pair("Layers", d.layers), std::pair("Ring", d.ring),
                                     std::pair("Ulysses", d.ulysses), std::pair("Tp", d.tp)})
    if (degree > 1) name += axis + std::to_string(degree);
  if (layout.modulation == SharedModulation::kNo) name += "WholeModulation";
  name = layout.fixture + name;
  std::erase(name, '-');
  return name;
}

// The blocks of this rank's stage, divided as evenly as possible.
BlockRange blocks_of(const Mesh& mesh, std::int64_t all) {
  const auto share = share_of(all, mesh.stages.rank(), mesh.stages.size());
  return {.begin = share.begin, .count = share.count};
}

class DenoiserLayouts : public testing::TestWithParam<Layout> {
 protected:
  DenoiserPart flux2(const Mesh& mesh) const {
    const auto config = config_of(fixture_.folder(), read_flux2_config);
    const auto weights = fixture_.weights();
    const Weights w(weights, flux2_names(weights), {.tensor_parallel = mesh.tp},
                    flux2_sharding(config, mesh.tp.size(), GetParam().modulation));
    const auto model = std::make_shared<Flux2>(config, w, attend_over(mesh),
                                               blocks_of(mesh, flux2_shape(config).num_blocks()));
    return {.predict = [=](const DenoiserInput& in, const Tensor& state) {
      return model->advance(in, state);
    }};
  }
  DenoiserPart zimage(const Mesh& mesh) const {
    const auto config = config_of(fixture_.folder(), read_zimage_config);
    const auto weights = with_left_out(fixture_.weights());
    const Weights w(weights, zimage_names(weights), {.tensor_parallel = mesh.tp},
                    zimage_sharding(config, mesh.tp.size()));
    return part_of(std::make_shared<const ZImage>(
        config, w, attend_over(mesh), blocks_of(mesh, zimage_shape(config).num_blocks())));
  }
  bool is_zimage() const { return GetParam().fixture.starts_with("zimage"); }
  DenoiserInput input() const {
    const auto& dump = fixture_.dump();
    return is_zimage() ? zimage_input(dump, at::kFloat) : flux2_input(dump, at::kFloat);
  }
  Tensor velocity(const Group& world, const Degrees& degrees) const {
    const c10::InferenceMode no_autograd;
    const auto mesh = make_mesh(world, degrees);
    return predict_over(mesh, is_zimage() ? zimage(mesh) : flux2(mesh))({input()}).front();
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

INSTANTIATE_TEST_SUITE_P(Flux2, DenoiserLayouts,
                         testing::Values(Layout{"klein", {.tp = 2}},
                                         Layout{"klein", {.ulysses = 3}},
                                         Layout{"klein", {.layers = 3}}, Layout{"dev", {.ring = 3}},
                                         Layout{"dev", {.tp = 3}},
                                         Layout{"dev", {.tp = 3}, SharedModulation::kNo},
                                         Layout{"dev", {.layers = 2, .ring = 2}},
                                         Layout{"wide", {.ulysses = 2, .tp = 2}},
                                         Layout{"five", {.ring = 2, .ulysses = 2}}),
                         [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(ZImage, DenoiserLayouts,
                         testing::Values(Layout{"zimage-31", {.ulysses = 2}},
                                         Layout{"zimage-31", {.ring = 3}},
                                         Layout{"zimage-32", {.tp = 5}},
                                         Layout{"zimage-32", {.layers = 3}},
                                         Layout{"zimage-33", {.tp = 2}},
                                         Layout{"zimage-33", {.layers = 2, .ulysses = 3}},
                                         Layout{"zimage-33", {.ring = 2, .tp = 2}}),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace braid::layouts_test
