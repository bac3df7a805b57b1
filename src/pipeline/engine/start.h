// Where pictures begin: drawn noise, given latents, or another picture with noise added; and what
// the denoiser sees beside the prompt.
#pragma once

#include "pipeline/engine/denoise.h"
#include "pipeline/loaded/model.h"
#include "pipeline/pictures/prepared.h"

namespace braid {

class Start {
 public:
  // Collective: pictures are encoded once, and all ranks get their latents.
  Start(const Model& model, const Settings& settings, const std::optional<Latents>& latents,
        const PreparedPictures& pictures);

  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start();

  // Collective, before the first step: evaluates references that are seen once.
  void encode_references();

  // Draws random values for the pictures numbered from `first`, in the reference's order with the
  // generators of `job`. Gives the job its latents, what is kept of them, and its branches' inputs.
  void begin(DenoiseJob& job, int first, float first_sigma) const;

 private:
  const PicturesTaken& taken() const;
  void encode_pictures(const PreparedPictures& pictures, Tiles tiles);
  void begin_from_picture(DenoiseJob& job, float sigma) const;
  Tensor noise_of(const DenoiseJob& job, int first) const;
  Tensor sampled(const VaeMoments& moments, const DenoiseJob& job) const;  // latents [B Z h w]
  Tensor extra_latents(const DenoiseJob& job) const;
  void encode(const PreparedPictures& pictures);
  std::vector<Tensor> pixels_followed_13HW(const PreparedPictures& pictures) const;
  std::vector<ControlInput> controls(const DenoiseJob& job) const;
  Tensor followed_BNC(std::size_t number, const DenoiseJob& job) const;
  Tensor packed_mask() const;
  Tensor extra_mask() const;

  const Model& model_;
  const Family& family_;
  const Settings& settings_;
  PictureSize size_;
  Tensor given_;                          // packed latents of all pictures
  std::optional<VaeMoments> init_;        // of the initial picture
  std::optional<VaeMoments> encoded_;     // of the picture beside the latents
  std::vector<VaeMoments> followed_;      // of those that ControlNets follow
  std::vector<Tensor> encoded_for_nets_;  // instead, for nets that see pixels: [1 N C] each
  Tensor clean_1NC_;                      // instead of init_, if started from its mean
  Tensor mask_11HW_;
  bool has_kept_references_ = false;            // their keys are computed once
  std::vector<Tokens> references_;              // by the mean; one may be the initial picture
  std::vector<VaeMoments> sampled_references_;  // used instead of their means
};

}  // namespace braid
