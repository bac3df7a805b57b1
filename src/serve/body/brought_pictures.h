// The pictures that clients send, in the terms of each API.
#pragma once

#include "image/input_file.h"
#include "serve/body/picture_request.h"

namespace braid::serve {

// A request's pictures, and what the result's file records of them: the client's file names, or
// else their roles.
struct BroughtPictures {
  PicturesIn pictures;
  std::vector<InputFile> files;
};

// The pictures of a request, of which only the headers were read: all are counted before decoding
// one costs time and memory.
class UndecodedPictures {
 public:
  explicit UndecodedPictures(const RequestBounds& bounds)
      : most_pixels_(std::uint64_t(bounds.max_input_pixels)), pixels_left_(most_pixels_) {}

  // Masks and pictures to follow have their colours without transparency, as Pillow's convert()
  // makes them; the others are laid over white. kHoles is a mask whose transparent pixels are drawn
  // anew, or its white ones if it is opaque. kPainted is the web UI's: where it has red, green,
  // blue and alpha and is not opaque, what is painted is drawn anew, whatever the colour.
  enum class Role { kInit, kMask, kHoles, kPainted, kReference, kControl };
  // Throws ApiError naming the field if the file is no picture, or 413 if the pixels of all are too
  // many.
  void add(Role role, const std::string& field, BroughtFile file);

  // The other settings of the pictures, which are empty until they are decoded.
  PicturesIn& settings() { return in_; }
  bool is_empty() const { return undecoded_.empty(); }
  std::size_t num_bytes() const { return num_bytes_; }  // once they are decoded

  // Throws ApiError naming the field.
  BroughtPictures decoded() &&;

 private:
  struct Undecoded {
    Role role;
    std::string field;
    BroughtFile file;
  };

  std::uint64_t most_pixels_, pixels_left_;  // the limit, and what is left of it
  std::size_t num_bytes_ = 0;
  std::vector<Undecoded> undecoded_;
  PicturesIn in_;
};

// Each throws ApiError naming the field if a file is no picture or if all have more pixels than
// bounds.max_input_pixels.

// `init`, `mask`, `reference`, `control`, each a file or base64, `strength`, and what
// read_picture_options() reads.
UndecodedPictures read_own_pictures(Fields& fields, const ModelInfo& info,
                                    const RequestBounds& bounds);

// OpenAI's `image`, `images` or `image_url`, and `mask`, besides our own fields. Images are
// references if the model takes any and there is neither a mask nor a strength; else the first is
// the one to start from. What a mask leaves transparent is drawn anew, or its white if it is
// opaque.
UndecodedPictures read_edited_pictures(Fields& fields, const ModelInfo& info,
                                       const RequestBounds& bounds);

// AUTOMATIC1111's `init_images`, `mask` and `denoising_strength`, and stable-diffusion.cpp's
// `extra_images`, which are references; read_sdapi_options() reads its other options of pictures.
// Images are references if the model does not start from pictures, or not without a mask; else the
// first is the one to start from.
UndecodedPictures read_sdapi_pictures(Fields& fields, const ModelInfo& info,
                                      const RequestBounds& bounds);
// `extra_images` alone.
UndecodedPictures read_sdapi_references(Fields& fields, const ModelInfo& info,
                                        const RequestBounds& bounds);

}  // namespace braid::serve
