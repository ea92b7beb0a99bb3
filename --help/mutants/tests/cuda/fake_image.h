/* What a fake image (fake_compile.c makes it) and the fake driver (fake_launch.c, fake_threads.c run it) know of one another. An
 * image is this head and then a shared object. Read as C by both and as C++ by the image itself, so it includes nothing. */
#ifndef FAKE_IMAGE_H
#define FAKE_IMAGE_H

#define FAKE_IMAGE_MAGIC "fake CUDA image\n"
typedef struct fake_image_head {
    char magic[16];
    int architecture, has_checks;        /* 90 of sm_90; the driver is called before each access */
    unsigned long n_bytes, checksum;     /* of the shared object that follows */
} fake_image_head;

/* FNV-1a */
static inline unsigned long fake_checksum(const char *bytes, unsigned long n_bytes)
{
    unsigned long hash = 0xcbf29ce484222325ul;
    for (unsigned long i = 0; i < n_bytes; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3ul;
    return hash;
}

typedef struct fake_place {
    unsigned x, y, z;
} fake_place;

/* The driver's side: where the thread that runs is, and what it may call. */
typedef struct fake_host {
    fake_place grid, block, block_index, thread_index;
    void (*barrier)(void);
    unsigned (*exchange)(unsigned value, unsigned distance);     /* with the lane whose number differs in these bits */
    void (*access)(const void *address, unsigned long n_bytes, int stores);
    void (*cluster_arrive)(void);
    void (*cluster_wait)(void);
    void (*cluster_store)(unsigned place, unsigned bits);        /* of a float, in the cluster's shared memory */
} fake_host;

#define FAKE_SHARED_BITS 24              /* of a place within the shared memory of a block, below its rank */


typedef struct fake_kernel {
    const char *name;                    /* NULL ends the table */
    int n_parameters, max_threads;       /* max_threads: of __launch_bounds__, 0 without */
    const unsigned long *sizes;          /* of the parameters */
    void (*thread)(void **parameters);   /* one thread */
} fake_kernel;

/* The image's side. */
typedef struct fake_image {
    const fake_kernel *kernels;
    int has_barriers;
    const char *start, *end;             /* of the image in memory: constants are read there */
    char *variables;                     /* from here to the end: shared ones among them */
    const fake_host **host;              /* to be set before a thread runs */
} fake_image;

#define FAKE_IMAGE_SYMBOL "fake_this_image"

#endif
