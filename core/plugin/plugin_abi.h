/* The interface between a plug-in and Lockstep, in pure C: a plug-in may be built with another
 * compiler, another C++ standard library, or an older version of this header.
 *
 * A plug-in is a shared library with two exported symbols:
 *   const uint32_t ls_plugin_abi_version   the LS_PLUGIN_ABI_VERSION it was compiled with
 *   int ls_plugin_init(const ls_host*, ls_plugin*)
 * `ls_plugin_init` defines operators through the host's functions; they are registered once it has
 * returned 0. It keeps the `ls_host` pointer, which is valid until the library is unloaded.
 *
 * Rules
 *  - Versions only append: members at the end of `ls_host` and of the structs that begin with
 *    `size`, and numbers to the enumerations. Everything else is frozen. A plug-in uses nothing
 *    newer than its own header; a host rejects plug-ins made for a newer version than its own.
 *  - The code that creates a struct that begins with `size` sets `size` to its sizeof.
 *  - Functions that return int return 0 on success. Otherwise the error is stored for the calling
 *    thread; a plug-in's function that then returns nonzero passes it on, as the original
 *    exception, to the caller of the operator. To report an error of its own it calls `fail` first.
 *  - C++ exceptions must not leave a plug-in's function; if one does, the call fails.
 *  - Everything obtained from an `ls_call` is borrowed until the function called with it returns.
 *  - Functions may be called on any thread, several at a time.
 *
 * core/plugin/plugin_wrapper.h is a C++17 layer above this header. */
#ifndef LOCKSTEP_PLUGIN_ABI_H
#define LOCKSTEP_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_PLUGIN_ABI_VERSION 5

#if defined(_WIN32)
#define LS_PLUGIN_EXPORT __declspec(dllexport)
#else
#define LS_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

typedef struct ls_plugin ls_plugin; /* the library being loaded */
typedef struct ls_op ls_op;         /* an operator being defined; valid during ls_plugin_init */
typedef struct ls_call ls_call;     /* one call of one of its functions */
typedef struct ls_tensor ls_tensor; /* a counted reference to a tensor */
typedef struct ls_text ls_text;     /* a text that a function of the plug-in gives */

/* Element types. */
enum { LS_BOOL, LS_U8, LS_I8, LS_I16, LS_I32, LS_I64, LS_F16, LS_BF16, LS_F32, LS_F64 };

/* Where a kernel runs. Tensors on LS_BACKEND_META have no elements. */
enum { LS_BACKEND_CPU, LS_BACKEND_HOST, LS_BACKEND_CUDA, LS_BACKEND_META };

/* Which strides a kernel accepts; the host copies other tensors. LS_STRIDES_MATRIX: the last two
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

/* Kinds of ls_value, and the members that hold the value. */
enum {
  LS_VALUE_NONE,
  LS_VALUE_INT,     /* integer */
  LS_VALUE_FLOAT,   /* real */
  LS_VALUE_BOOL,    /* integer: 0 or 1 */
  LS_VALUE_INTS,    /* integers, length */
  LS_VALUE_FLOATS,  /* reals, length */
  LS_VALUE_BOOLS,   /* integer: bit i is element i; length */
  LS_VALUE_TEXT,    /* text, length; not null-terminated */
  LS_VALUE_DTYPE,   /* integer */
  LS_VALUE_TENSOR,  /* tensor */
  LS_VALUE_TENSORS, /* tensors, length; NULL where one is absent */
  LS_VALUE_OTHER    /* any other type; it can only be passed on */
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
  void* data; /* first element; NULL in a shape rule and on meta */
  const int64_t* sizes;
  const int64_t* strides; /* in elements */
  int32_t rank;           /* -1: an absent optional tensor */
  int32_t dtype;
  /* version 2 */
  int32_t device_type; /* LS_BACKEND_... */
  int32_t device_index;
} ls_tensor_view;

/* Geometry of a result, given by a shape rule or by a kernel that makes the result. */
typedef struct ls_output_spec {
  size_t size;
  const int64_t* sizes;
  const int64_t* strides; /* NULL: row-major */
  int32_t rank;           /* -1: this result is absent in this call */
  int32_t dtype;
} ls_output_spec;

/* version 3: grid and block dimensions of a launch. */
typedef struct ls_launch_shape {
  size_t size;
  uint32_t blocks[3];
  uint32_t threads[3];   /* in a block */
  uint32_t shared_bytes; /* dynamic shared memory */
} ls_launch_shape;

/* A function of a plug-in, which the host calls with the registered `data`; 0 on success. */
typedef int (*ls_function)(void* data, ls_call* call);
/* version 5: a pass over the graph of a compiled function, null-terminated text. */
typedef int (*ls_graph_pass)(void* data, const char* graph, ls_text* result);

typedef struct ls_host {
  size_t size;
  uint32_t abi_version; /* the host's version */
  uint32_t reserved;

  /* Stores an error for the calling thread. Returns 1, so that `return host->fail(...)` works. */
  int (*fail)(int32_t kind, const char* message);
  /* The stored error message, or "". Valid until the next call of a host function. */
  const char* (*error)(void);

  /* --- in ls_plugin_init ------------------------------------------------------------------- */

  /* Begins an operator: "my::scale_clamp(Tensor self, float scale, *, float max=6) -> Tensor". The
   * name must have a namespace. NULL if the schema is malformed or the name is taken. */
  ls_op* (*define)(ls_plugin* plugin, const char* schema, const char* doc);
  /* Sets the shape rule, which returns the results' geometry (`add_result`) and rejects invalid
   * arguments. Results that are arguments (`Tensor(a!)`) need no spec. Every operator needs a rule,
   * a body (`set_body`), or kernels that make the results (`set_dynamic`; implied if all results
   * are numbers). */
  int (*set_rule)(ls_op* op, ls_function rule, void* data);
  /* Sets a kernel, which computes the elements of the results that the host has allocated. `type`
   * is the signature that it was written for, "Tensor, float, float -> Tensor", and is compared
   * with the schema; NULL: not compared. Without a kernel the operator runs only on meta. */
  int (*set_kernel)(ls_op* op, int32_t backend, int32_t strides, const char* type,
                    ls_function kernel, void* data);
  /* Sets the derivative, which computes gradients of the tensor arguments (`set_gradient`) from
   * those of the results, using operators (`call`). `saves` names the tensors that it reads:
   * arguments and "output0", each optionally with the arguments whose gradients need it: "self for
   * other". */
  int (*set_derivative)(ls_op* op, const char* const* saves, uint32_t save_count,
                        ls_function derivative, void* data);
  /* Declares that there is no derivative; errors report `reason`. */
  int (*set_not_differentiable)(ls_op* op, const char* reason);
  int (*set_autocast)(ls_op* op, int32_t autocast);
  /* Replaces the kernel of an existing structured operator. All its forms (functional, in place,
   * out=) use the new one until the plug-in is unloaded. */
  int (*override_kernel)(ls_plugin* plugin, const char* op, int32_t backend, int32_t strides,
                         const char* type, ls_function kernel, void* data);

  /* --- in the functions of an operator ----------------------------------------------------- */
  /* Arguments are numbered from 0 in schema order; a list is one argument. */

  /* Gets a tensor argument of a rule or kernel. Kernels write into `Tensor(a!)` arguments. */
  int (*argument_view)(ls_call* call, uint32_t index, ls_tensor_view* view);
  /* Get a tensor list's length, and one of its tensors. */
  int (*list_length)(ls_call* call, uint32_t index, uint32_t* length);
  int (*list_view)(ls_call* call, uint32_t index, uint32_t element, ls_tensor_view* view);
  /* Gets any argument, by its type in the schema: `float` is LS_VALUE_FLOAT whatever number was
   * passed, `Scalar` has the kind of the number. Tensors are handles in bodies and batching rules,
   * and LS_VALUE_OTHER elsewhere. */
  int (*argument)(ls_call* call, uint32_t index, ls_value* value);

  /* Rule: adds the spec of the next result. */
  int (*add_result)(ls_call* call, const ls_output_spec* spec);
  /* Rule: casts tensor arguments of another dtype to this one before the kernel runs. If it is a
   * floating-point type, the kernel writes floating-point results in it, too. */
  int (*set_compute_dtype)(ls_call* call, int32_t dtype);

  /* Kernel: gets the view of result `index`; results that are arguments are not counted. */
  int (*result_view)(ls_call* call, uint32_t index, ls_tensor_view* view);

  /* Derivative. Tensor arguments are numbered separately, each element of a list by itself: 0 is
   * the first tensor. */
  /* Gets the gradient of result `index`; NULL if it has none. */
  int (*gradient)(ls_call* call, uint32_t index, ls_tensor** gradient);
  /* Gets element `index` of `saves`; NULL if it was not needed or is absent. */
  int (*saved)(ls_call* call, uint32_t index, ls_tensor** saved);
  /* Gets the geometry of tensor `index`, without elements. */
  int (*input_view)(ls_call* call, uint32_t index, ls_tensor_view* view);
  /* Returns 1 if the gradient of tensor `index` is needed, else 0. */
  int (*needs_gradient)(ls_call* call, uint32_t index);
  /* Sets the gradient of tensor `index`; the plug-in keeps its own reference. */
  int (*set_gradient)(ls_call* call, uint32_t index, ls_tensor* gradient);

  /* --- tensors ----------------------------------------------------------------------------- */

  /* Calls an operator by name, with arguments in schema order; trailing ones that have defaults may
   * be omitted. Its tensor results, with lists flattened, are stored in `results` as new references
   * (NULL: absent) and counted in `count`; more than `capacity` is an error. Autograd records the
   * call as usual. */
  int (*call)(const char* op, const ls_value* arguments, uint32_t argument_count,
              ls_tensor** results, uint32_t capacity, uint32_t* count);
  int (*tensor_view)(ls_tensor* tensor, ls_tensor_view* view);
  void (*retain)(ls_tensor* tensor);
  void (*release)(ls_tensor* tensor); /* NULL is allowed */

  /* --- version 2 --------------------------------------------------------------------------- */

  /* Sets a body instead of a rule and kernels: a function composed of other operators, which
   * autograd differentiates. It returns its results with `set_result`. */
  int (*set_body)(ls_op* op, ls_function body, void* data);
  /* Body or batching rule: sets result `index`; the plug-in keeps its own reference. */
  int (*set_result)(ls_call* call, uint32_t index, ls_tensor* result);
  /* Add the forms `name_`, which writes into its first argument, and `name.out`, or
   * `name.overload_out` if the operator has an overload. Both need exactly one result. With the
   * first, the result may share its memory with the first argument of the kernel. */
  int (*add_in_place_form)(ls_op* op);
  int (*add_out_form)(ls_op* op);
  /* Sets a batching rule, which handles a batch in one call: arguments for which `is_batched`
   * returns 1 have a leading batch dimension, and so must every result (`set_result`). Composed of
   * operators, like a body. */
  int (*set_batching)(ls_op* op, ls_function rule, void* data);
  int (*is_batched)(ls_call* call, uint32_t index);
  /* Derivative: sums and casts `gradient` to the geometry of tensor `index`, which reverses
   * broadcasting and promotion. The result is a new reference. */
  int (*unbroadcast)(ls_call* call, ls_tensor* gradient, uint32_t index, ls_tensor** result);
  /* Calls `body(data, first, last)` on parts that together cover [0, count), on the host's threads;
   * each part except the last is at least `grain` long. Each index must be computed in the same way
   * wherever the cuts fall. */
  int (*parallel_for)(int64_t count, int64_t grain,
                      int (*body)(void* data, int64_t first, int64_t last), void* data);

  /* --- version 3: kernels of LS_BACKEND_CUDA, which queue work and do not wait for it ------- */

  /* Gets the call's device, and the CUstream that its work must be queued on, in order with the
   * caller's earlier work. For use with the device's libraries; either pointer may be NULL. */
  int (*cuda_stream)(ls_call* call, int32_t* device, void** stream);
  /* Allocates scratch memory for this call, aligned to 512 bytes: device memory of the host's
   * allocator, in stream order, so that work of the next owner runs after the work of this call.
   * The host frees the rest when the kernel returns. Kernels of other backends get cpu memory. */
  int (*allocate)(ls_call* call, size_t bytes, void** memory);
  int (*deallocate)(ls_call* call, void* memory); /* NULL is allowed */
  /* Queues a kernel of `image`, a fatbin, cubin or null-terminated PTX, which the host loads at the
   * first launch and keeps until the plug-in is unloaded; it must not change. The kernel is extern
   * "C" and takes one parameter, a plain struct of `parameter_bytes` bytes, at most 4096, which is
   * copied before this returns. */
  int (*launch)(ls_call* call, const void* image, const char* kernel, const ls_launch_shape* shape,
                const void* parameters, size_t parameter_bytes);

  /* --- version 4: results whose sizes depend on values ------------------------------------ */

  /* Lets kernels make the results, instead of a rule, because sizes of tensors depend on elements
   * (`new_result`) or because some results are numbers (`set_value`): int, float, bool, Scalar.
   * Such an operator changes no argument, has no other forms, and cannot run on meta or under vmap.
   * Implied if all results are numbers; such an operator has no derivative. */
  int (*set_dynamic)(ls_op* op);
  /* Kernel without a rule: allocates result `index` of the schema, once, on the call's device, and
   * returns its view. The spec is as for `add_result`. */
  int (*new_result)(ls_call* call, uint32_t index, const ls_output_spec* spec,
                    ls_tensor_view* view);
  /* Kernel without a rule: sets result `index`, which must be a number in the schema. Body: sets
   * result `index` of any type, including tensor lists. The data is copied, tensors are shared. */
  int (*set_value)(ls_call* call, uint32_t index, const ls_value* value);
  /* Kernel: copies from the memory of the call's device to the cpu's, after the work queued so
   * far, and waits for the copy. */
  int (*read)(ls_call* call, void* to, const void* from, size_t bytes);
  /* Like `call`, for an operator whose one result is a number. */
  int (*call_for_value)(const char* op, const ls_value* arguments, uint32_t argument_count,
                        ls_value* result);

  /* --- version 5: compiled functions -------------------------------------------------------- */

  /* In ls_plugin_init: adds a pass, which functions that are compiled from then on run before the
   * host's own. It gets a graph as `lockstep graph --compiled` prints it, before anything is fused,
   * and may give (`set_text`) the text of another one with the same inputs and as many outputs,
   * which computes the same bits; values keep their numbers, new ones have new numbers. `name`
   * stands in the log. */
  int (*add_graph_pass)(ls_plugin* plugin, const char* name, ls_graph_pass pass, void* data);
  /* Graph pass: sets the result, of which the host keeps a copy. */
  int (*set_text)(ls_text* result, const char* text, size_t length);
} ls_host;

/* Defined by the plug-in. */
extern LS_PLUGIN_EXPORT const uint32_t ls_plugin_abi_version;
LS_PLUGIN_EXPORT int ls_plugin_init(const ls_host* host, ls_plugin* plugin);

#ifdef __cplusplus
}
#endif

#endif
