// Where pictures begin: drawn noise, given latents, or another picture to which noise is added; and
// what the denoiser sees beside the prompt.
#pragma once

#include "pipeline/model.h"
#include "pipeline/pictures/prepared.h"
#include "pipeline/sampling/denoise.h"

namespace braid {

class Start {
 public:
  // Collective: pictures are encoded once, and all ranks get their latents.
  Start(const Model& model, const Settings& settings, const std::optional<Latents>& latents,
        const PreparedPictures& pictures);

  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start();

  // Collective, before the first step: what the model sees of references once.
  void see_references();

  // Of pictures from `first` on, those of job.generators: draws what is random in the order of the
  // reference, and gives the job its latents, what is kept of them, and what its branches see.
  void begin(DenoiseJob& job, int first, float first_sigma) const;

 private:
  const PicturesTaken& taken() const;
  void look_at(const PreparedPictures& pictures, Tiles tiles);
  void begin_from_picture(DenoiseJob& job, float sigma) const;
  Tensor noise_of(const DenoiseJob& job, int first) const;
  Tensor sampled(const VaeMoments& moments, const DenoiseJob& job) const;  // latents [B Z h w]
  Tensor beside_latents(const DenoiseJob& job) const;
  void encode(const PreparedPictures& pictures);
  std::vector<ControlInput> controls(const DenoiseJob& job) const;
  Tensor packed_mask() const;
  Tensor beside_mask() const;

  const Model& model_;
  const Family& family_;
  const Settings& settings_;
  PictureSize size_;
  Tensor given_;                      // packed latents of all pictures
  std::optional<VaeMoments> init_;    // of the initial picture
  std::optional<VaeMoments> seen_;    // of the picture beside the latents
  std::vector<VaeMoments> followed_;  // of those that ControlNets follow
  std::vector<Tensor> seen_pixels_;   // in their place, where nets see pixels
  Tensor clean_1NC_;  // in the place of init_, where the mean is what is started from
  Tensor mask_11HW_;
  bool are_seen_once_ = false;                  // references, not in every step
  std::vector<Tokens> references_;              // by the mean; one may be the initial picture
  std::vector<VaeMoments> sampled_references_;  // in their place
};

}  // namespace braid
