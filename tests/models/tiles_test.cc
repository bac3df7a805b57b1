// Mapping tile by tile and joining again.
#include "models/vae/tiles.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace braid::tiles_test {

// The last tile may be narrower than the blended border, or a single row.
TEST(SlowTiles, JoinWhatIsMappedPixelByPixelAtEverySize) {
  for (std::int64_t height = 1; height <= 20; ++height)
    for (const std::int64_t width : {7, 13}) {
      const auto x = at::rand({1, 2, height, width});
      const auto same = map_tiles(x, {.in_size = 8, .out_size = 8},
                                  [](const at::Tensor& t) { return t.clone(); });
      EXPECT_TRUE(at::allclose(same, x, 0, 1e-6)) << height << "x" << width;
      const auto doubled = [](const at::Tensor& t) {
        return t.repeat_interleave(2, 2).repeat_interleave(2, 3);
      };
      for (const std::int64_t side : {8, 2, 3, 5, 6, 7}) {
        const auto twice = map_tiles(x, {.in_size = side, .out_size = 2 * side}, doubled);
        EXPECT_TRUE(at::allclose(twice, doubled(x), 0, 1e-6)) << height << "x" << width;
        const auto halved = map_tiles(doubled(x), {.in_size = 2 * side, .out_size = side},
                                      [](const at::Tensor& t) { return at::avg_pool2d(t, 2); });
        EXPECT_TRUE(at::allclose(halved, x, 0, 1e-6)) << height << "x" << width << " by " << side;
      }
    }
}

}  // namespace braid::tiles_test
