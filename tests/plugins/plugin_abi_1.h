/* Version 1 of core/plugin/plugin_abi.h as it was, for a test: never to be changed.
 *
 * What a plug-in and Lockstep say to each other, in C alone: a plug-in may come from another
 * compiler, another C++ standard library, or an older version of this header.
 *
 * A plug-in is a shared library with two exported names:
 *   const uint32_t ls_plugin_abi_version   the LS_PLUGIN_ABI_VERSION it was compiled with
 *   int ls_plugin_init(const ls_host*, ls_plugin*)
 * `ls_plugin_init` describes operators through the host's functions; they exist once it has
 * returned 0. It keeps the `ls_host` pointer, which is valid until the library is unloaded.
 *
 * Rules
 *  - Versions only append: members at the end of `ls_host` and of the structs that begin with
 *    `size`, and numbers to the enumerations. Everything else is frozen. A plug-in asks for nothing
 *    newer than its own header; a host refuses plug-ins made for a newer version than its own.
 *  - Who makes a struct that begins with `size` sets it to the sizeof it was compiled with.
 *  - Functions that return int return 0 on success. Otherwise the error is kept for the calling
 *    thread, and a plug-in's function that then returns nonzero itself passes it on to the caller
 *    of the operator, as the exception that it was. To fail by itself it calls `fail` first.
 *  - C++ exceptions must not leave a plug-in's function. Those that do end the call as an error.
 *  - What an `ls_call` gives is borrowed until the function that was called with it returns.
 *  - Functions are called on any thread, several at a time.
 */
#ifndef LOCKSTEP_PLUGIN_ABI_H
#define LOCKSTEP_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_PLUGIN_ABI_VERSION 1

#if defined(_WIN32)
#define LS_PLUGIN_EXPORT __declspec(dllexport)
#else
#define LS_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

typedef struct ls_plugin ls_plugin; /* the library being loaded */
typedef struct ls_op ls_op;         /* an operator being defined; valid during ls_plugin_init */
typedef struct ls_call ls_call;     /* one call of one of its functions */
typedef struct ls_tensor ls_tensor; /* a counted reference to a tensor */

/* Element types. */
enum { LS_BOOL, LS_U8, LS_I8, LS_I16, LS_I32, LS_I64, LS_F16, LS_BF16, LS_F32, LS_F64 };

/* Where a kernel runs. Tensors on LS_BACKEND_META have no elements. */
enum { LS_BACKEND_CPU, LS_BACKEND_HOST, LS_BACKEND_CUDA, LS_BACKEND_META };

/* Which strides a kernel takes; the host copies for the others. LS_STRIDES_MATRIX: the last two
 * dimensions of each argument row- or column-major, results row-major. */
enum { LS_STRIDES_ANY, LS_STRIDES_CONTIGUOUS, LS_STRIDES_MATRIX };

/* What autocast does with floating-point arguments. */
enum { LS_AUTOCAST_NONE, LS_AUTOCAST_LOWER_PRECISION, LS_AUTOCAST_F32, LS_AUTOCAST_PROMOTE };

/* Kinds of failure; each is an exception class on the host's side. */
enum {
  LS_ERROR,
  LS_ERROR_SHAPE,
  LS_ERROR_DTYPE,
  LS_ERROR_DEVICE,
  LS_ERROR_INDEX,
  LS_ERROR_DISPATCH,
  LS_ERROR_AUTOGRAD,
  LS_ERROR_DATA,
  LS_ERROR_OUT_OF_MEMORY
};

/* Kinds of ls_value, and the members that hold it. */
enum {
  LS_VALUE_NONE,
  LS_VALUE_INT,     /* integer */
  LS_VALUE_FLOAT,   /* real */
  LS_VALUE_BOOL,    /* integer: 0 or 1 */
  LS_VALUE_INTS,    /* integers, length */
  LS_VALUE_FLOATS,  /* reals, length */
  LS_VALUE_BOOLS,   /* integer: bit i is element i; length */
  LS_VALUE_TEXT,    /* text, length; not ended by 0 */
  LS_VALUE_DTYPE,   /* integer */
  LS_VALUE_TENSOR,  /* tensor */
  LS_VALUE_TENSORS, /* tensors, length; NULL where one is absent */
  LS_VALUE_OTHER    /* a type without a form here; only to be passed on */
};

/* An argument of a call. Its size never changes. */
typedef struct ls_value {
  int32_t kind;
  int32_t reserved; /* 0 */
  uint64_t length;
  union {
    int64_t integer;
    double real;
    const int64_t* integers;
    const double* reals;
    const char* text;
    ls_tensor* tensor;
    ls_tensor* const* tensors;
    uint64_t room[2];
  } as;
} ls_value;

/* A tensor's elements and geometry. */
typedef struct ls_tensor_view {
  size_t size;
  void* data; /* of the first element; NULL in a shape rule and on meta */
  const int64_t* sizes;
  const int64_t* strides; /* in elements */
  int32_t rank;           /* -1: an absent optional tensor */
  int32_t dtype;
} ls_tensor_view;

/* One result as a shape rule promises it. */
typedef struct ls_output_spec {
  size_t size;
  const int64_t* sizes;
  const int64_t* strides; /* NULL: row-major */
  int32_t rank;           /* -1: this result is absent in this call */
  int32_t dtype;
} ls_output_spec;

/* What a plug-in gives the host to call: 0 on success. `data` is what was registered with it. */
typedef int (*ls_function)(void* data, ls_call* call);

typedef struct ls_host {
  size_t size;
  uint32_t abi_version; /* of the host */
  uint32_t reserved;

  /* Notes why something failed, for the calling thread. Returns 1, for `return host->fail(...)`. */
  int (*fail)(int32_t kind, const char* message);
  /* The noted message, or "" where there is none. Valid until the next call of a host function. */
  const char* (*error)(void);

  /* --- in ls_plugin_init ------------------------------------------------------------------- */

  /* Begins an operator: "my::scale_clamp(Tensor self, float scale, *, float max=6) -> Tensor". The
   * name must have a namespace. NULL when the schema is malformed or the name is taken. */
  ls_op* (*define)(ls_plugin* plugin, const char* schema, const char* doc);
  /* Gives the results' geometry (`add_result`), and refuses bad arguments. Every operator needs a
   * rule. Results that are arguments (`Tensor(a!)`) need no spec. */
  int (*set_rule)(ls_op* op, ls_function rule, void* data);
  /* Computes the elements of the results, which the host has allocated. `type` says for which
   * signature it was written, "Tensor, float, float -> Tensor", and is compared with the schema;
   * NULL: not compared. Without a kernel the operator runs on meta alone. */
  int (*set_kernel)(ls_op* op, int32_t backend, int32_t strides, const char* type,
                    ls_function kernel, void* data);
  /* Computes gradients of the tensor arguments (`set_gradient`) from those of the results, with
   * operators (`call`). `saves` names what it reads: arguments and "output0", each optionally "for"
   * the arguments whose gradients read it: "self for other". */
  int (*set_derivative)(ls_op* op, const char* const* saves, uint32_t save_count,
                        ls_function derivative, void* data);
  /* Says why there is none. */
  int (*set_not_differentiable)(ls_op* op, const char* reason);
  int (*set_autocast)(ls_op* op, int32_t autocast);
  /* Puts a kernel in front of that of a structured operator which exists. All its forms
   * (functional, in place, out=) use it until the plug-in is unloaded. */
  int (*override_kernel)(ls_plugin* plugin, const char* op, int32_t backend, int32_t strides,
                         const char* type, ls_function kernel, void* data);

  /* --- in the functions of an operator ----------------------------------------------------- */
  /* Indices count the schema's arguments from 0, lists as one. */

  /* A tensor argument of a rule or kernel. Kernels write into `Tensor(a!)` arguments. */
  int (*argument_view)(ls_call* call, uint32_t index, ls_tensor_view* view);
  /* A tensor list's length, and one of its tensors. */
  int (*list_length)(ls_call* call, uint32_t index, uint32_t* length);
  int (*list_view)(ls_call* call, uint32_t index, uint32_t element, ls_tensor_view* view);
  /* Any argument, by its type in the schema: `float` is LS_VALUE_FLOAT whatever number was given,
   * `Scalar` the kind of number it is. Tensors are LS_VALUE_OTHER. */
  int (*argument)(ls_call* call, uint32_t index, ls_value* value);

  /* Rule: the next result. */
  int (*add_result)(ls_call* call, const ls_output_spec* spec);
  /* Rule: tensor arguments of another dtype are cast to this one before the kernel sees them, and
   * where it is a floating one the kernel writes floating results in it too. */
  int (*set_compute_dtype)(ls_call* call, int32_t dtype);

  /* Kernel: where to write result `index`, counting those that are no argument. */
  int (*result_view)(ls_call* call, uint32_t index, ls_tensor_view* view);

  /* Derivative. Tensors count by themselves, elements of lists each: 0 is the first tensor. */
  /* Gradient of result `index`; NULL when none arrived. */
  int (*gradient)(ls_call* call, uint32_t index, ls_tensor** gradient);
  /* The `index`-th of `saves`; NULL when it was not needed or is absent. */
  int (*saved)(ls_call* call, uint32_t index, ls_tensor** saved);
  /* Geometry of tensor `index`, without elements. */
  int (*input_view)(ls_call* call, uint32_t index, ls_tensor_view* view);
  /* 1 when the gradient of tensor `index` is wanted, else 0. */
  int (*needs_gradient)(ls_call* call, uint32_t index);
  /* The gradient of tensor `index`; the plug-in keeps its own reference. */
  int (*set_gradient)(ls_call* call, uint32_t index, ls_tensor* gradient);

  /* --- tensors ----------------------------------------------------------------------------- */

  /* Calls an operator by name, with arguments in schema order, of which trailing ones may be left
   * out where they have defaults. Its tensor results, lists element by element, are stored in
   * `results` as new references (NULL: absent) and counted in `count`; more than `capacity` is a
   * failure. Calls are recorded by autograd like any other. */
  int (*call)(const char* op, const ls_value* arguments, uint32_t argument_count,
              ls_tensor** results, uint32_t capacity, uint32_t* count);
  int (*tensor_view)(ls_tensor* tensor, ls_tensor_view* view);
  void (*retain)(ls_tensor* tensor);
  void (*release)(ls_tensor* tensor); /* NULL is allowed */
} ls_host;

/* Defined by the plug-in. */
extern LS_PLUGIN_EXPORT const uint32_t ls_plugin_abi_version;
LS_PLUGIN_EXPORT int ls_plugin_init(const ls_host* host, ls_plugin* plugin);

#ifdef __cplusplus
}
#endif

#endif
