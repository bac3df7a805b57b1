// What the toy families share: a T5 as text encoder, and latents that are one token each, with
// their channels last.
#pragma once

#include "models/t5/model.h"
#include "pipeline/families/family.h"

namespace braid::toy {

Part toy_text_part(const T5Config& config);

class GridFamily : public Family {
 public:
  GridFamily(Description description, const T5Config& t5)
      : Family(std::move(description)), t5_(t5) {}

  std::unique_ptr<const TextEncoders> load_text(const std::filesystem::path& folder, at::Device,
                                                const WeightsOf& weights_of,
                                                const Warn&) const override;
  std::int64_t num_tokens(PictureSize size) const override { return rows(size) * columns(size); }
  std::vector<std::int64_t> latent_shape(PictureSize size) const override {
    return {shape().in_width, rows(size), columns(size)};
  }
  Tensor pack(const Tensor& latents) const override;
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override;
  Names single_file_names() const override { return {}; }
  std::string config_text(const Part&) const override { return "{}\n"; }

 protected:
  std::int64_t rows(PictureSize size) const { return size.height / description().vae.downscale(); }
  std::int64_t columns(PictureSize size) const {
    return size.width / description().vae.downscale();
  }

 private:
  T5Config t5_;
};

// Positions [N 2] of a grid's tokens: row and column. float32.
Tensor grid_positions(std::int64_t rows, std::int64_t columns, at::Device device);

// Refuses a transformer for text of another width than the encoder's.
void check_text_width(std::int64_t of_transformer, const T5Config& t5);

}  // namespace braid::toy
